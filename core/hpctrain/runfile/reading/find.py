"""Which run file: the one that was named, `run.toml` here, or the nearest one above."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from hpctrain.errors import ConfigError, Problem
from hpctrain.model.names import GRAPH, PLAN
from hpctrain.runfile.keys import nearest

NAME = "run.toml"
LOCK = "run.lock.toml"


def find_run(named: Path | None, environ: Mapping[str, str], start: Path) -> tuple[Path, str]:
    """The run file's path and how to call it in messages; looks up to the first `.git` or home.

    ConfigError for one that nobody named and that another user can write: it says what is executed.
    """
    if named is not None:
        return _folder_or_file(start / named), str(named)
    home = Path(environ.get("HOME") or "/")
    for folder in (start, *start.parents):
        if (folder / NAME).is_file():
            file = folder / _name_in(folder)
            _need_trusted(file)
            return file, file.name if folder == start else str(file)
        if folder == home or (folder / ".git").exists():
            break
    message = f"no {NAME} here or above"
    raise ConfigError(Problem(code="no-file", message=message, hint="hpctrain init run"))


def is_run_directory(folder: Path) -> bool:
    """Whether a run lies there: a project may have a `plan.json` of its own."""
    names = (PLAN, GRAPH)
    return all(os.path.isfile(folder / name) for name in names)  # noqa: PTH113  (False where it may not be entered)


def _name_in(folder: Path) -> str:
    """What the run file there is called: of a run it is the lock, which has all that was asked."""
    return LOCK if is_run_directory(folder) and (folder / LOCK).is_file() else NAME


def _need_trusted(path: Path) -> None:
    """A run file can name hooks and commands: one that was only found must be this user's, or root's."""
    from hpctrain_job.files import trust  # a file that is named needs it not

    if fault := trust.file_fault(str(path), trust.NOBODY_ELSE):
        message = f"{path} was found, not named, and {fault}: nothing in it is used"
        hint = f"{path}      (name it on the command line if you trust it)"
        raise ConfigError(Problem(code="not-trusted", message=message, where=str(path), hint=hint))


def need_same_owner(path: Path, run_file: Path) -> None:
    """ConfigError for a file beside the run file that is neither this user's nor the run file's owner's."""
    from hpctrain_job.files import trust  # most runs have no such file

    accepted = trust.Accepted((str(run_file.stat().st_uid),))
    if fault := trust.owner_fault(str(path), accepted):
        message = f"{path} {fault}: what it pins would be installed and run as you"
        hint = f"mv {path} ASIDE      (then hpctrain lock)"
        raise ConfigError(Problem(code="not-trusted", message=message, where=str(path), hint=hint))


def _folder_or_file(path: Path) -> Path:
    """Say more than "does not exist" when a folder or a near name explains the mistake."""
    try:
        name = _name_in(path)
        if path.is_dir() and (path / name).is_file():
            hint = str(path / name)
            message = f"{path.name} is a folder; a TOML file is needed"
            raise ConfigError(Problem(code="is-folder", message=message, where=str(path), hint=hint))
        if not path.exists() and path.parent.is_dir():
            near = nearest(path.name, (p.name for p in path.parent.glob("*.toml")))
            message = f"{path.name} does not exist in {path.parent}"
            hint = near[0] if near else "hpctrain init run"
            raise ConfigError(Problem(code="no-file", message=message, where=str(path), hint=hint))
    except (OSError, ValueError):
        pass  # reading it will say what is wrong with the name
    return path
