"""Where a command's words go: data to stdout, all else to stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hpctrain.cli.flags import Flags
from hpctrain.errors import ConfigError, HpctrainError, Problem

if TYPE_CHECKING:
    from hpctrain.cli.typed import Typed
    from hpctrain.ui.term import Term


class Out:
    """The two streams of a command, dressed as the flags and the environment say."""

    def __init__(self, flags: Flags, environ: Mapping[str, str]) -> None:
        self.flags = flags
        self.environ = environ
        self.typed: Callable[[], Typed] | None = None
        """How the run was opened, for proposed commands to get the same options; made when one is written,
        which a plan seldom does."""

    @classmethod
    def of(cls, flags: Flags, environ: Mapping[str, str]) -> Out:
        return cls(flags, environ)

    @cached_property
    def term(self) -> Term:
        """The terminal, or pipe, behind stdout."""
        return self.terminal(sys.stdout)

    @cached_property
    def err(self) -> Term:
        """The terminal, or pipe, behind stderr."""
        return self.terminal(sys.stderr)

    def terminal(self, stream: Any) -> Term:
        """The terminal, or pipe, behind a stream, as wide as it is now."""
        from hpctrain.ui.term import Term

        flags = self.flags
        return Term.of(
            stream, self.environ, color=flags.color, ascii=flags.ascii or None, plain=flags.plain or None
        )

    def lines(self, lines: Iterable[str]) -> None:
        """Print lines for people to stdout."""
        self.term.write(*lines)

    def document(self, schema: str, **fields: Any) -> None:
        """The one JSON document of a command; NaN is null."""
        document = {"schema": f"hpctrain/{schema}/1", **fields}
        sys.stdout.write(json.dumps(_finite(document), ensure_ascii=False) + "\n")

    def say(self, *lines: str) -> None:
        """Something worth knowing that is not data."""
        if not self.flags.quiet:
            self.err.write(*lines)

    def next(self, command: str) -> None:
        """The usual next act, as a line to paste; only people at a terminal see it."""
        if self.flags.quiet or self.flags.json or not (sys.stdout.isatty() and sys.stderr.isatty()):
            return
        self.err.write(f"next:  {self.typed().completed(command) if self.typed else command}")

    def completed(self, problems: Iterable[Problem]) -> list[Problem]:
        """The problems, with hints that lead to the run as it was opened."""
        return [self.typed().problem(problem) if self.typed else problem for problem in problems]

    def warn(self, problems: Iterable[Problem]) -> None:
        """Problems that do not stop the command."""
        warnings = [p for p in problems if not p.fatal]
        if warnings and not self.flags.quiet:
            from hpctrain.ui.problem import problem_lines

            self.err.write(*problem_lines(self.completed(warnings), self.err))

    def problems(self, error: HpctrainError, closing: str = "") -> int:
        """An error as people or programs read it; the exit code is its class."""
        problems = self.completed(error.problems)
        if self.flags.json:
            from hpctrain.ui.problem import problem_json

            self.document("problems", problems=[problem_json(p) for p in problems])
        if self.flags.debug:
            import traceback

            self.err.write(*traceback.format_exc().splitlines())
        from hpctrain.ui.problem import problem_lines

        many = closing or (error.closing if len(problems) > 1 else "")
        self.err.write(*problem_lines(problems, self.err, closing=many))
        return error.exit_code

    def confirm(self, question: str, *, default: bool, flag: str = "--yes") -> bool:
        """Ask, where somebody can answer; else `default` when nothing is lost by it."""
        if self.flags.yes:
            return True
        if not self.can_ask:
            if default:
                return True
            raise ConfigError.of("usage", f"there is no terminal to ask on: {question.strip()}", hint=flag)
        sys.stderr.write(f"{question} [{'Y/n' if default else 'y/N'}] ")
        sys.stderr.flush()
        answer = sys.stdin.readline().strip().lower()
        return default if not answer else answer.startswith("y")

    @property
    def can_ask(self) -> bool:
        """Whether a question would be seen and answered."""
        silent = self.flags.no_input or os.environ.get("CI")
        return not silent and sys.stdin.isatty() and sys.stderr.isatty()


def _finite(value: Any) -> Any:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return value
