"""Every broken rule of every row of chat files, with line and column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hpctrain_tokens import pieces, sources
from hpctrain_tokens.chat import locate, rules
from hpctrain_tokens.faults import SHOWN_FAULTS, DataError, Fault, RowError
from hpctrain_tokens.jsonrows import parse
from hpctrain_tokens.packed import plain
from hpctrain_tokens.pieces import LONGEST, Row
from hpctrain_tokens.sources import Source


@dataclass
class Checked:
    """How many rows there are, how many are bad, and the first faults."""

    rows: int = 0
    bad: int = 0
    faults: list[Fault] = field(default_factory=list)


def check(inputs: Iterable[str], key: str = "messages", subset: str = "", split: str = "") -> Checked:
    """Look at every row; nothing is written."""
    result = Checked()
    for source in sources.find(inputs, subset, split):
        for row in _rows(source):
            faults = [f.at(source.name, row.number) for f in faults_of(row, key)]
            result.rows += 1
            result.bad += bool(faults)
            result.faults += faults[: SHOWN_FAULTS - len(result.faults)]
    if not result.rows:
        raise DataError.of("no-rows", "there are no rows")
    return result


def _rows(source: Source) -> Iterator[Row]:
    if source.packed:
        yield from _unpacked(source)
        return
    number = 0
    for piece in pieces.divide([source], {}):
        for row in pieces.Reading(piece):
            number += 1
            yield Row(number, row.raw, row.values)


def _unpacked(source: Source) -> Iterator[Row]:
    number, remainder = 0, b""
    for block in plain(source):
        *lines, remainder = (remainder + block).split(b"\n")
        for line in lines:
            number += 1
            yield Row(number, line if len(line) < LONGEST else None)
    if remainder:
        yield Row(number + 1, remainder if len(remainder) < LONGEST else None)


def faults_of(row: Row, key: str) -> list[Fault]:
    """What is wrong with one row."""
    try:
        value = parse(row)
    except RowError as error:
        return [error.fault]
    return [_placed(finding, row) for finding in rules.broken(value, key)]


def _placed(finding: rules.Finding, row: Row) -> Fault:
    column, end = 1, None
    if row.raw is not None:
        column, end = locate.span(row.raw.decode("utf-8"), finding.path)
    where = locate.dotted(finding.path)
    return Fault(finding.code, finding.message, column=column, end=end, where=where, hint=finding.hint)
