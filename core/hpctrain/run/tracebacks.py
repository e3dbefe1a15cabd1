"""The exception that ended a training: of the rank that failed first, no consequence of another's end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from attrs import evolve, frozen

from hpctrain.run.printed import Line, Printed

RANK = r"(?:\[rank(?P<rank>\d+)\]: ?|(?P<task>\d+): )"
"""What torch, or a starter of ranks, puts in front of a rank's lines."""
_HEAD = re.compile(r"^(?P<start>.*?)Traceback \(most recent call last\):$", re.M)
_RANK = re.compile(RANK)
_RANK_LOG = re.compile(r"\.rank(\d+)\.log\Z")
_TABLE = "  traceback : "
"""Where torchrun prints what a rank wrote into its error file; the lines below are indented by two."""
_CONSEQUENCE = re.compile(
    r"DistBackendError|Connection (?:reset|closed)|Broken pipe"
    r"|ChildFailedError|CalledProcessError|SignalException"
)
"""How ranks and their starters end because another rank ended before them."""
_TORCHRUN = re.compile(
    r"^(?P<others>Failures:\n(?:.*\n)*?)Root Cause \(first observed failure\):\n"
    r"(?:.*\n){1,4}?  rank      : (?P<rank>\d+) ",
    re.M,
)


@frozen(kw_only=True)
class _Raised:
    """An exception as it was printed, and whose."""

    line: Line
    rank: int | None

    @property
    def is_consequence(self) -> bool:
        return bool(_CONSEQUENCE.search(self.line.text))


def first(logs: Iterable[Printed]) -> Line | None:
    """The exception of the rank that torchrun calls the root cause, else of the first rank that has one."""
    logs = list(logs)
    roots = {rank for printed in logs for rank in _root_ranks(printed)}
    raised = [exception for printed in logs for exception in _raised(printed)]
    raised.sort(key=lambda exception: (exception.is_consequence, exception.rank not in roots))
    return raised[0].line if raised and not raised[0].is_consequence else None


def without_consequences(printed: Printed) -> Printed:
    """A log in which torchrun's table names the root cause alone: it ended the other ranks itself."""
    text = _TORCHRUN.sub(lambda match: _blanked(match, "others"), printed.text)
    return evolve(printed, text=text)


def _blanked(match: re.Match[str], group: str) -> str:
    """The match with empty lines in place of a group, so that the lines below keep their numbers."""
    begin, end = (at - match.start() for at in match.span(group))
    whole = match.group()
    return whole[:begin] + "\n" * match[group].count("\n") + whole[end:]


def _root_ranks(printed: Printed) -> Iterator[int]:
    return (int(match["rank"]) for match in _TORCHRUN.finditer(printed.text))


def _raised(printed: Printed) -> Iterator[_Raised]:
    """Each exception of a log."""
    own_log = _RANK_LOG.search(printed.log)
    for head in _HEAD.finditer(printed.text):
        prefix = _RANK.match(head["start"])
        position = _end(printed.text, head, prefix is not None)
        if position is None:
            continue
        number = (prefix["rank"] or prefix["task"]) if prefix else own_log[1] if own_log else None
        yield _Raised(line=printed.line(position), rank=None if number is None else int(number))


def _end(text: str, head: re.Match[str], ranked: bool) -> int | None:
    """Where the line stands that closes a traceback: the first that is not indented, of the same rank."""
    start = head["start"] if ranked else "  " if head["start"] == _TABLE else ""
    position = head.end() + 1
    while position < len(text):
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        words = text[position:end]
        text_of_rank = words.removeprefix(start)
        if (text_of_rank != words or not start) and text_of_rank.strip() and not text_of_rank[0].isspace():
            return position
        position = end + 1
    return None
