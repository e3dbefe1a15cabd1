"""Words: what a command line is made of before anyone knows on which machine it runs.

A word that is not plain text cannot be formatted into a string by accident: `f"{Loc(...)}"` raises.
Only `hpctrain.render.shell` turns words into text.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn, TypeAlias, Union

from attrs import frozen


class _Unformattable:
    """Refuses every implicit way into a string; `repr` stays, for people and tests."""

    __slots__ = ()

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(f"{self!r} is bound late and cannot be formatted; use Join(...) instead")

    __format__ = _refuse
    __str__ = _refuse
    __add__ = _refuse
    __radd__ = _refuse


@frozen
class Var(_Unformattable):
    """A shell variable, expanded where the command runs: `Var("HPC_HEAD")`."""

    name: str
    """Of the job: HPC_HEAD, WORK; a step that runs here has the login node's too."""


@frozen
class Loc(_Unformattable):
    """A path below a storage role of the cluster: `Loc("data", "corpus/train.jsonl")`."""

    role: str
    """A storage role: data, assets, runs."""
    path: str = ""
    """Below it."""

    def __truediv__(self, below: str) -> Loc:
        return Loc(self.role, f"{self.path}/{below}".lstrip("/"))


@frozen
class Secret(_Unformattable):
    """A token by name; legal only as the value of an EnvVar, read from a private file in the task."""

    name: str
    """As the run file's `secrets` names it."""


@frozen
class Raw(_Unformattable):
    """Shell text that is not quoted. Search for `Raw(` to audit every use."""

    text: str
    """As it is."""


@frozen(init=False)
class Join(_Unformattable):
    """Words without a space between them: `Join("--out=", Loc("runs", "model"))`."""

    parts: tuple[Word, ...]
    """Given one by one: Join(a, b)."""

    def __init__(self, *parts: Word) -> None:
        object.__setattr__(self, "parts", parts)


Word: TypeAlias = Union[str, Var, Loc, Secret, Raw, Join]  # noqa: UP007  (a forward reference)


@frozen
class Cmd:
    """One command: its words, and what a shell line would say around them.

    `Cmd.of("git", "clone", url, Var("WORK"))` is the usual way to write one.
    """

    argv: tuple[Word, ...]
    """The program and its arguments."""
    cwd: Word | None = None
    """Where it runs; in a subshell."""
    stdout: Word | None = None
    """A file that takes its output."""

    @classmethod
    def of(cls, *argv: Word, **fields: Any) -> Cmd:
        """A command from its words, one by one."""
        return cls(argv, **fields)


Line: TypeAlias = Union[Cmd, Raw]  # noqa: UP007


def template(text: str) -> Word:
    """Text of a fact in which `${NAME}` is a variable of the job: `/tmp/${USER}/cache`."""
    parts = re.split(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", text)
    if len(parts) == 1:
        return text
    pieces: list[Word] = [Var(p) if i % 2 else p for i, p in enumerate(parts)]
    return Join(*(p for p in pieces if p != ""))


def words_in(value: object) -> list[Word]:
    """Every word inside `value`, Joins opened."""
    if isinstance(value, Join):
        return [w for part in value.parts for w in words_in(part)]
    if isinstance(value, Cmd):
        return [w for part in (*value.argv, value.cwd, value.stdout) for w in words_in(part)]
    if isinstance(value, (str, Var, Loc, Secret, Raw)):
        return [value]
    if isinstance(value, (tuple, list)):
        return [w for part in value for w in words_in(part)]
    return []


def locs_in(value: object) -> list[Loc]:
    """The locations among the words of `value`: what binds and mounts are computed from."""
    return [w for w in words_in(value) if isinstance(w, Loc)]
