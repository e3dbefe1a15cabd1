"""What can go wrong, as data: a Problem says what, where and how to mend it.

Every error class owns one exit code (`hpctrain help exit-codes`), so that scripts can tell
a mistake in a run file from a full disk without reading text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from typing_extensions import Self


@frozen(kw_only=True)
class Span:
    """A place in a file the user wrote: lines and columns count from 1, `end` is the column after."""

    file: str
    """The file, as its user named it."""
    line: int
    """The line."""
    column: int = 1
    """The first column."""
    end: int | None = None
    """The column after the last."""
    text: str = ""
    """The line's text."""


@frozen(kw_only=True)
class Problem:
    """One thing that is wrong, with where and how to mend it."""

    code: str
    """A slug, also the anchor of its documentation: `hpctrain help SLUG`."""
    message: str
    """What is wrong, lower case, without a full stop."""
    where: str = ""
    """A key path: `resources.time`."""
    hint: str = ""
    """What to type, as text to paste."""
    notes: tuple[str, ...] = ()
    """Facts: one line each."""
    fatal: bool = True
    """False: a warning."""
    source: str = ""
    """Stamped by core: who said so."""
    span: Span | None = None
    """Filled in by core: the line it stands on."""


class HpctrainError(Exception):
    """Base of all errors that we foresee; carries every problem found, not only the first."""

    exit_code = 1
    closing = "nothing was built or submitted"
    """What stands below several problems."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(p.message for p in problems))
        self.problems = problems

    @classmethod
    def of(cls, code: str, message: str, **fields: object) -> Self:
        """An error with one problem: the common case."""
        return cls(Problem(code=code, message=message, **fields))  # type: ignore[arg-type]


class ConfigError(HpctrainError):
    """The run file, an option or a name is wrong."""

    exit_code = 2


class PluginError(HpctrainError):
    """A plugin cannot be used, or its hook failed."""

    exit_code = 3


class StepFailed(HpctrainError):
    """A step that ran here ended badly."""

    exit_code = 4


class StepRefused(StepFailed):
    """A step that ran here found that what the run file says does not fit what it found."""

    exit_code = 2


class SubmitError(HpctrainError):
    """The scheduler refused a job, or nobody knows whether it took it."""

    exit_code = 5


class NotReachable(HpctrainError):
    """The command needs something that this machine lacks: a network, a scheduler."""

    exit_code = 6


class TimedOut(NotReachable):
    """What was waited for did not end in the time that it was given."""


class IntegrityError(HpctrainError):
    """Content does not match its manifest."""

    exit_code = 7


class JobFailed(HpctrainError):
    """The job ended badly and the caller waited for it."""

    exit_code = 8


INTERRUPTED = 130


def fatal(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems that stop the command, without the warnings."""
    return tuple(p for p in problems if p.fatal)


def raise_fatal(problems: Iterable[Problem], error: type[HpctrainError] = ConfigError) -> None:
    """Raise `error` with every problem when one of them is fatal."""
    all_problems = tuple(problems)
    if fatal(all_problems):
        raise error(*all_problems)
