"""What programs printed: the end of a log, as a terminal would show it, with the numbers of its lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from attrs import frozen

from hpctrain.run.output.logs import last_state

TAIL = 1 << 20
"""Bytes kept of the end of each log: what ended a step stands there."""
LEAST_TAIL = 8 << 10
TOTAL = 8 << 20
"""Bytes kept of all logs together, less of each with many: a hundred rules take 1.5 s for a megabyte."""
BLOCK = 1 << 20
WIDEST = 400
"""Characters shown of one line; a program that never ends its lines writes one of a gigabyte."""
BEFORE = 15
_CONTROL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])"
    r"|\x9b[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
"""What steers a terminal: colours, titles, single control characters."""


@frozen(kw_only=True)
class Line:
    """A line of a log; `before` are those before it."""

    log: str
    number: int
    text: str
    before: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """`logs/train.log:12`."""
        return f"{self.log}:{self.number}"


@frozen(kw_only=True)
class Printed:
    """The end of a log, and how many lines come before it."""

    log: str
    text: str
    skipped: int = 0

    def line(self, position: int) -> Line:
        """The line in which the character at `position` stands, no wider than people read."""
        begin = self.text.rfind("\n", 0, position) + 1
        end = self.text.find("\n", position)
        end = len(self.text) if end < 0 else end
        left = begin if position - begin < WIDEST // 2 else position - WIDEST // 4
        before = self.text[max(0, begin - BEFORE * 10 * WIDEST) : max(0, begin - 1)].split("\n")[-BEFORE:]
        return Line(
            log=self.log,
            number=self.skipped + self.text.count("\n", 0, begin) + 1,
            text=("…" if left > begin else "") + _clipped(self.text[left : min(end, left + 2 * WIDEST)]),
            before=tuple(_clipped(line) for line in before) if begin else (),
        )


def read(stream: IO[bytes], log: str, tail: int = TAIL, start: int = 0) -> Printed:
    """The last `tail` bytes behind `start` of a stream that may be endless in width or length, cleaned."""
    tail_bytes = bytearray()
    skipped = 0
    while start and (block := stream.read(min(BLOCK, start))):
        start -= len(block)
        skipped += block.count(b"\n")
    while block := stream.read(BLOCK):
        tail_bytes += block
        if len(tail_bytes) > 2 * tail + BLOCK:
            skipped += _drop(tail_bytes, tail)
    skipped += _drop(tail_bytes, tail)
    return Printed(log=log, text=plain(tail_bytes.decode("utf-8", "replace")), skipped=skipped)


def read_all(paths: Mapping[str, Path], sizes: Mapping[str, int]) -> dict[str, Printed]:
    """Several logs by the names that people know them by, from `sizes` on; together no more than TOTAL.

    A log that is shorter by now was begun anew.
    """
    tail = min(TAIL, max(LEAST_TAIL, TOTAL // max(1, len(paths))))
    printed = {}
    for log, path in paths.items():
        with path.open("rb") as stream:
            start = sizes.get(path.name, 0)
            printed[log] = read(stream, log, tail, start if start <= path.stat().st_size else 0)
    return printed


def plain(text: str) -> str:
    """Every line as it was seen last, without what steers a terminal."""
    return "\n".join(last_state(line) for line in _CONTROL.sub("", text).split("\n"))


def _drop(data: bytearray, tail: int) -> int:
    """Take away all but the last `tail` bytes; how many lines these were."""
    end = max(0, len(data) - tail)
    lines = data.count(b"\n", 0, end)
    del data[:end]
    return lines


def _clipped(text: str) -> str:
    return text if len(text) <= WIDEST else text[:WIDEST] + "…"
