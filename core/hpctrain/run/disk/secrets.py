"""Tokens by reference: where each comes from, and the private file from which the task reads it.

The value is in memory only between the two. It never stands in an argument, a script, a log, the
record or an error; `repr` of a Token does not show it.
"""

from __future__ import annotations

import contextlib
import netrc
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from attrs import frozen

from hpctrain.errors import ConfigError, Problem
from hpctrain.model.run import RunSpec
from hpctrain.plan.tokens import STATE, InNetrc, InVariable, TokenPlace, places
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.system import files
from hpctrain_job.files import trust

if TYPE_CHECKING:
    from hpctrain.render.graph import Graph


@frozen
class Token:
    """A secret with its name and the place it was read from ("file ~/.netrc")."""

    name: str
    value: str = attrs.field(repr=False)
    place: str


def find(
    name: str,
    environ: Mapping[str, str],
    *,
    settings: Mapping[str, Any] | None = None,
) -> Token | None:
    """The token called `name`, at the first of its places that has one."""
    for place in places(name, settings):
        token = _at(name, place, environ, required=bool(settings and name in settings))
        if token is not None:
            return token
    return None


def require(
    names: Iterable[str], environ: Mapping[str, str], *, settings: Mapping[str, Any] | None = None
) -> tuple[Token, ...]:
    """All these tokens, or one error that names every missing one."""
    tokens = {name: find(name, environ, settings=settings) for name in names}
    missing = [name for name, token in tokens.items() if token is None]
    if missing:
        raise ConfigError.of(
            "secret",
            f"no token found for {', '.join(missing)}",
            where="secrets",
            hint=f'[secrets] {missing[0]} = {{ file = "~/.config/{missing[0]}-token" }}',
            notes=("the table belongs in your settings, never in the run file",),
        )
    return tuple(token for token in tokens.values() if token is not None)


def with_tokens_here(
    run: RunSpec, goal: str, environ: Mapping[str, str], settings: Mapping[str, Any]
) -> tuple[RunSpec, tuple[Problem, ...]]:
    """The run with those of its tokens that are here: a command in its environment may need none of them."""
    missing = tuple(name for name in run.secrets if find(name, environ, settings=settings) is None)
    problems = tuple(
        Problem(
            code="secret",
            message=f"no token found for {name}: {goal} goes without it",
            where="secrets",
            fatal=False,
        )
        for name in missing
    )
    present = tuple(name for name in run.secrets if name not in missing)
    return attrs.evolve(run, secrets=present), problems


def folder(graph: Graph, run: RunDirectory) -> Path | None:
    """Where the tokens of a run lie, one folder a step; the job's script computes the same path. None where
    only its jobs know the place."""
    state = graph.binding.roots.get(STATE)
    return Path(state, "secrets", folder_name(graph.name, run)) if isinstance(state, str) else None


def folder_name(name: str, run: RunDirectory) -> str:
    """What the folder of a run of this name is called."""
    return f"{name}-{run.own_name}"


def place(tokens: Iterable[Token], folder: Path, run: RunDirectory, step: str) -> Path:
    """Write each token to a private file for one step below the run's `folder`, and return where they are.

    Never below the run directory: people copy and share those.
    """
    home = folder / step
    if home.resolve().is_relative_to(run.path.resolve()):
        raise ConfigError.of("secret", f"{folder} lies in the run directory; tokens must not")
    files.make_folder(home)
    for token in tokens:
        files.write(home / token.name, token.value + "\n")
    return home


def placed(folder: Path) -> tuple[str, ...]:
    """The steps of a run whose tokens are on the disk."""
    with files.naming(folder, "read"), contextlib.suppress(FileNotFoundError):
        return tuple(sorted(path.name for path in folder.iterdir()))
    return ()


def folders(state: Path) -> tuple[Path, ...]:
    """Those of all runs that have tokens on the disk."""
    home = state / "secrets"
    with files.naming(home, "read"), contextlib.suppress(FileNotFoundError):
        return tuple(sorted(path for path in home.iterdir() if path.is_dir() and any(path.iterdir())))
    return ()


def remove(folder: Path, step: str) -> None:
    """Delete the tokens of a step; it is no error when its job has done so already."""
    with files.naming(folder / step, "remove"):
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder / step)
        with contextlib.suppress(OSError):  # other steps of the run still have theirs
            folder.rmdir()


def _at(name: str, place: TokenPlace, environ: Mapping[str, str], *, required: bool) -> Token | None:
    """The token at one place; None where it is not there, unless it must be."""
    if isinstance(place, InVariable):
        value = environ.get(place.name, "")
        return _token(name, value, str(place)) if required or value.strip() else None
    if isinstance(place, InNetrc):
        path = _home_path(environ.get("NETRC", "~/.netrc"), environ)
        value = _netrc_password(path, place.host)
        return _token(name, value, str(path)) if value else None
    base = environ.get(place.base) or place.otherwise
    if place.base and not base:
        return None
    path = _home_path(base + place.path, environ)
    return _token(name, _text_of(path), str(path)) if required or path.is_file() else None


def _text_of(path: Path) -> str:
    """The text of a token file; ConfigError where another user may have written it, or can read it."""
    with files.naming(path, "read"):
        fault = trust.file_fault(str(path), trust.NOBODY_ELSE) or trust.read_fault(str(path))
        if fault:
            raise ConfigError.of(
                "secret-file",
                f"{path} {fault}",
                where="secrets",
                hint=f"chmod 600 {path}      (if it is yours)",
            )
        return path.read_text("utf-8", "replace")


def _netrc_password(path: Path, host: str) -> str:
    if not path.is_file():
        return ""
    _text_of(path)
    try:
        entry = netrc.netrc(path).authenticators(host)
    except (netrc.NetrcParseError, OSError, UnicodeDecodeError):
        # Its message quotes the file, so neither it nor its cause may be shown.
        raise ConfigError.of("secret", f"{path} cannot be read as a netrc file") from None
    return (entry[2] or "") if entry else ""


def _token(name: str, raw: str, place: str) -> Token:
    value = raw.strip()
    if not value or not value.isprintable() or " " in value:
        complaint = "is empty" if not value else "is not one word of printable characters"
        raise ConfigError.of("secret", f"the token for {name} in {place} {complaint}", where="secrets")
    return Token(name, value, place)


def _home_path(text: str, environ: Mapping[str, str]) -> Path:
    home = environ.get("HOME") or str(Path.home())
    return Path(home + text[1:]) if text == "~" or text.startswith("~/") else Path(text)
