"""What acting hooks start programs with; `run/system/tools.py` is what they get."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Protocol


class ProgramResult(Protocol):
    """How a program ended and what it wrote."""

    @property
    def argv(self) -> tuple[str, ...]:
        """The program and its arguments."""

    @property
    def code(self) -> int:
        """Its exit code; below 0 the number of the signal that ended it."""

    @property
    def out(self) -> str:
        """What it wrote to stdout."""

    @property
    def err(self) -> str:
        """What it wrote to stderr."""


class Tell(Protocol):
    """Hears how far long work is: called with a title, what is done, and how much there is to do."""

    def __call__(self, title: str, done: int, total: int, /) -> None: ...


class ProgramRunner(Protocol):
    """`tools` of acting hooks, the only way to start programs: argv lists and never a shell, a small clean
    environment, a limit on every wait."""

    def hide(self, *values: str) -> None:
        """Take these values out of everything that is shown from now on."""

    def scrubbed(self, text: str) -> str:
        """`text` without the secrets that are known or recognised."""

    def which(self, name: str) -> str | None:
        """The path of a program, or None when this machine does not have it."""

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        input: str | None = None,  # noqa: A002  (the word that everybody knows from subprocess)
        timeout: float = 60.0,
        ok: Container[int] = (0,),
        inherit: bool = False,
    ) -> ProgramResult:
        """Run a program to its end and return what it wrote.

        `cwd` is where; `env` are variables beside the few that it sees (`inherit`: all of the caller's);
        `input` is its stdin. `ok` are the exit codes that are right: any other raises StepFailed with the
        program's last lines, so `ok=range(256)` is for whoever judges `.code` himself. NotReachable when
        there is no such program, TimedOut after `timeout` seconds.
        """

    def stream(
        self,
        argv: Sequence[str],
        *,
        log: Path,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        on_line: Callable[[str], None] | None = None,
        timeout: float | None = None,
        inherit: bool = False,
    ) -> int:
        """Run a long program, append all it writes to `log`, tell each new last line to `on_line`, and return
        its exit code, whatever it is. Without `timeout` it may take as long as it needs."""
