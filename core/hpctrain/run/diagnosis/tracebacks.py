"""The exception that ended a training: of the rank that failed first, no consequence of another's end."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from attrs import evolve, frozen

from hpctrain.run.diagnosis.printed import Line, Printed

RANK = r"(?:\[rank(?P<rank>\d{1,9})\]: ?|(?P<task>\d{1,9}): )"
"""What torch, or a starter of ranks, puts in front of a rank's lines."""
_HEAD = re.compile(r"^(?P<start>.*?)Traceback \(most recent call last\):$", re.M)
_RANK = re.compile(RANK)
_RANK_LOG = re.compile(r"\.rank(\d{1,9})\.log\Z")
_TABLE = "  traceback : "
"""Where torchrun prints what a rank wrote into its error file; the lines below are indented by two."""
_CONSEQUENCE = re.compile(
    r"DistBackendError|Connection (?:reset|closed)|Broken pipe"
    r"|ChildFailedError|CalledProcessError|SignalException"
)
"""How ranks and their starters end because another rank ended before them."""
_FAILURES = re.compile(r"^Failures:\n", re.M)
_ROOT_CAUSE = re.compile(
    r"^Root Cause \(first observed failure\):\n(?:.*\n){1,4}?  rank      : (?P<rank>\d{1,9}) ", re.M
)
"""The two parts of torchrun's table: the other ranks, and the one that failed first."""
MOST = 2000
"""Tracebacks that are looked at in one log; a megabyte holds that many that are real."""
LONGEST = 500
"""Lines in which a traceback ends, those of other ranks between its own included."""


@frozen(kw_only=True)
class _Raised:
    """An exception as it was printed, and whose."""

    printed: Printed
    position: int
    rank: int | None
    is_consequence: bool


def first(logs: Iterable[Printed]) -> Line | None:
    """The exception of the rank that torchrun calls the root cause, else of the first rank that has one."""
    logs = list(logs)
    roots = {rank for printed in logs for rank in _root_ranks(printed)}
    raised = [exception for printed in logs for exception in _raised(printed)]
    raised.sort(key=lambda exception: (exception.is_consequence, exception.rank not in roots))
    if not raised or raised[0].is_consequence:
        return None
    return raised[0].printed.line(raised[0].position)


def without_consequences(printed: Printed) -> Printed:
    """A log in which torchrun's table names the root cause alone: it ended the other ranks itself.

    Empty lines take the place of the others, so that the lines below keep their numbers.
    """
    parts, end = [], 0
    for first_line, cause in _tables(printed.text):
        parts += [printed.text[end:first_line], "\n" * printed.text.count("\n", first_line, cause.start())]
        end = cause.start()
    return evolve(printed, text="".join((*parts, printed.text[end:])))


def _tables(text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Where each of torchrun's tables begins, with its root cause."""
    end = 0
    for cause in _ROOT_CAUSE.finditer(text):
        if head := _FAILURES.search(text, end, cause.start()):
            yield head.start(), cause
        end = cause.end()


def _root_ranks(printed: Printed) -> Iterator[int]:
    return (int(cause["rank"]) for _, cause in _tables(printed.text))


def _raised(printed: Printed) -> Iterator[_Raised]:
    """Each exception of a log."""
    own_log = _RANK_LOG.search(printed.log)
    for head in itertools.islice(_HEAD.finditer(printed.text), MOST):
        prefix = _RANK.match(head["start"])
        span = _end(printed.text, head, prefix is not None)
        if span is None:
            continue
        number = (prefix["rank"] or prefix["task"]) if prefix else own_log[1] if own_log else None
        yield _Raised(
            printed=printed,
            position=span[0],
            rank=None if number is None else int(number),
            is_consequence=bool(_CONSEQUENCE.search(printed.text, *span)),
        )


def _end(text: str, head: re.Match[str], ranked: bool) -> tuple[int, int] | None:
    """Begin and end of the line that closes a traceback: the first that is not indented, of the same rank."""
    start = head["start"] if ranked else "  " if head["start"] == _TABLE else ""
    position = head.end() + 1
    for _ in range(LONGEST):
        if position >= len(text):
            break
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        words = text[position:end]
        text_of_rank = words.removeprefix(start)
        if (text_of_rank != words or not start) and text_of_rank.strip() and not text_of_rank[0].isspace():
            return position, end
        position = end + 1
    return None
