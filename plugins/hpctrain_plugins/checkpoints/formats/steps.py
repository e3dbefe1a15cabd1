"""Which step folder of a checkpoint folder is meant."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_job.files import documents
from hpctrain_plugins.checkpoints.copying.publishing import inside


def step_folder(path: Path, tag: str, pointer: str, holds: Callable[[Path], bool]) -> Path:
    """`path` itself, the folder called `tag`, the one `pointer` names, or the only one there is."""
    if tag:
        if not holds(path / inside(tag, path)):
            raise ConfigError.of("checkpoint-step", f"{path / tag} contains no such checkpoint", where=tag)
        return path / tag
    if holds(path):
        return path
    file = path / pointer
    if file.is_file():
        named = inside(pointed(file), file)
        if not holds(path / named):
            message = f"{file} names {named}, which holds no checkpoint of this format"
            raise IntegrityError.of("checkpoint-step", message, where=str(file), hint="--tag NAME")
        return path / named
    folders = sorted(p for p in path.iterdir() if p.is_dir() and holds(p)) if path.is_dir() else []
    if len(folders) == 1:
        return folders[0]
    names = ", ".join(p.name for p in folders)
    message = f"{path} holds several checkpoints: {names}" if folders else f"{path} holds no checkpoint"
    raise ConfigError.of(
        "checkpoint-step", message, where=str(path), hint=f"--tag {folders[-1].name}" if folders else ""
    )


def pointed(file: Path) -> str:
    """What the file of a trainer says that names its newest step."""
    try:
        return documents.text(file).strip()
    except (OSError, ValueError) as error:
        message = f"{file} cannot be read ({error})"
        raise IntegrityError.of("checkpoint-damaged", message, where=str(file), hint="--tag NAME") from error


def leads_to(path: Path, holds: Callable[[Path], bool]) -> bool:
    """Whether `path` or a folder in it holds such a checkpoint."""
    if not path.is_dir():
        return False
    if holds(path):
        return True
    return any(p.is_dir() and holds(p) for p in path.iterdir())


def step_number(name: str) -> int | None:
    """The number at the end of a step folder's name."""
    match = re.search(r"(\d+)$", name)
    return int(match[1]) if match else None
