"""Rows as a trainer will read them: what would end its job or teach nothing is told apart from what it takes.

A file of gigabytes is not read whole: its first part is, and then places up to its end, each by whole lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpctrain_tokens import pieces
from hpctrain_tokens.chat import locate, rules
from hpctrain_tokens.chat_template import Template, Turn
from hpctrain_tokens.faults import SHOWN_FAULTS, DataError, Fault, RowError
from hpctrain_tokens.fields import Fields, columns_of
from hpctrain_tokens.jsonrows import parse
from hpctrain_tokens.pieces import SIZE, Piece, Row
from hpctrain_tokens.sources import Source

MOST = 128 << 20
"""Bytes of one file that are read."""
SUFFIXES = (".jsonl", ".ndjson")
TAKEN = frozenset({"blank-row", "chat-empty", "chat-end", "chat-order", "row-duplicate"})
"""Faults that trainers pass over or learn from; a template that minds says so itself."""
SEPARATORS = "\x85\u2028\u2029"
"""What JSON allows in a text, and where Python's `splitlines` ends a line."""

Tell = Callable[[str, int, int], None]
"""A title, the bytes that were read, and how many there are to read."""


@dataclass(frozen=True)
class Reader:
    """How a trainer reads its rows."""

    fields: Fields
    roles: tuple[str, ...] = rules.ROLES
    taken: frozenset[str] = TAKEN
    """Codes of faults with which it goes on."""
    instead: str = ""
    """Another key of rows that it also understands, which are not judged here."""
    separates: bool = False
    """It ends a line at every character of SEPARATORS."""
    template: Template | None = None

    def faults(self, row: Row) -> Iterator[Fault]:
        """Everything that is wrong with one row."""
        try:
            values = parse(row)
        except RowError as error:
            yield error.fault
            return
        text = row.raw.decode("utf-8") if row.raw is not None else ""
        if self.separates:
            yield from _separators(text)
        if self.instead and self.instead in values and self.fields.names[0] not in values:
            return
        if self.fields.kind != "messages":
            yield from self._texts(values, text)
            return
        findings = [*rules.broken(values, self.fields.names[0]), *self._strangers(values)]
        yield from (_placed(finding, text) for finding in findings)
        if self.template and all(_is_taken(fault, self) for fault in (_placed(f, text) for f in findings)):
            yield from self._rendered(values, text, self.template)

    def _texts(self, values: dict[str, Any], text: str) -> Iterator[Fault]:
        try:
            self.fields.messages(values) if self.fields.kind == "pair" else self.fields.text(values)
        except RowError as error:
            path = (error.fault.where,) if error.fault.where in values else ()
            yield _placed(rules.Finding(error.fault.code, error.fault.message, path), text)

    def _strangers(self, values: dict[str, Any]) -> Iterator[rules.Finding]:
        """Roles that others know and this trainer does not."""
        key = self.fields.names[0]
        turns = values.get(key)
        for number, turn in enumerate(turns if isinstance(turns, list) else ()):
            role = turn.get("role") if isinstance(turn, dict) else None
            if role in rules.ROLES and role not in self.roles:
                message = f'role "{role}" is not one of {", ".join(self.roles)}, which this trainer knows'
                yield rules.Finding("chat-role", message, (key, number, "role"))

    def _rendered(self, values: dict[str, Any], text: str, template: Template) -> Iterator[Fault]:
        key = self.fields.names[0]
        tools = values.get("tools")
        try:
            template.render(list(map(_plain, values[key])), tools=tools if isinstance(tools, list) else None)
        except RowError as error:
            if error.fault.code == "chat-refused":  # of another failure our rendering may be the cause
                yield _placed(rules.Finding(error.fault.code, error.fault.message, (key,)), text)


@dataclass
class Judgement:
    """What a file's rows are for its trainer."""

    file: str
    size: int
    read: int = 0
    rows: int = 0
    refused: list[Fault] = field(default_factory=list)
    taken: list[Fault] = field(default_factory=list)
    """The first fault of each kind with which the trainer goes on."""
    counts: Counter[str] = field(default_factory=Counter)
    """How many rows have one of each kind."""


def judge(path: Path, reader: Reader, *, most: int = MOST, tell: Tell | None = None) -> Judgement:
    """Read `path` until enough is wrong with it; at most `most` bytes of it."""
    result = Judgement(str(path), path.stat().st_size)
    every = pieces.divide([Source(path, "jsonl")], {})
    chosen = spread(every, max(1, most // SIZE))
    to_read = sum(piece.stop - piece.start for piece in chosen)
    line, end = 0, 0
    for piece in chosen:
        if piece.start != end:
            line = _UNKNOWN
        line = _judge_piece(piece, line, reader, result)
        end, result.read = piece.stop, result.read + piece.stop - piece.start
        if tell is not None and len(chosen) > 1:  # the others take no time
            tell(path.name, result.read, to_read)
        if len(result.refused) >= SHOWN_FAULTS:
            break
    if not result.rows:
        raise DataError.of("no-rows", "there are no rows", file=str(path))
    return result


def columns(path: Path) -> frozenset[str]:
    """The keys of the first rows; broken ones are passed over."""
    return frozenset(columns_of(pieces.divide([Source(path, "jsonl")], {})))


def spread(every: Sequence[Piece], count: int) -> list[Piece]:
    """At most so many pieces: half of them from the beginning, the others evenly up to the end."""
    if len(every) <= count:
        return list(every)
    first = every[: (count + 1) // 2]
    later = every[len(first) :]
    places = count - len(first)
    return [*first, *(later[(number + 1) * len(later) // places - 1] for number in range(places))]


_UNKNOWN = -1


def _judge_piece(piece: Piece, before: int, reader: Reader, result: Judgement) -> int:
    """The number of lines up to the end of the piece, where that of those before it is known."""
    count = 0
    for row in pieces.Reading(piece):
        count = row.number
        result.rows += 1
        for fault in reader.faults(row):
            if before == _UNKNOWN:
                before = _lines_before(piece)
            placed = fault.at(result.file, before + row.number)
            if not _is_taken(fault, reader):
                result.refused.append(placed)
            elif not result.counts[fault.code]:
                result.taken.append(placed)
            result.counts[fault.code] += 1
        if len(result.refused) >= SHOWN_FAULTS:
            break
    return before if before == _UNKNOWN else before + count


def _lines_before(piece: Piece) -> int:
    """How many lines begin before the piece: counted only where one of its rows has to be named."""
    if not piece.start:
        return 0
    left, count = piece.start - 1, 1
    with Path(piece.path).open("rb") as file:
        while left and (block := file.read(min(left, SIZE))):
            count += block.count(b"\n")
            left -= len(block)
    return count


def _is_taken(fault: Fault, reader: Reader) -> bool:
    """Whether the trainer goes on with it; a conversation without any message is never one."""
    is_whole_row = fault.where in ("", *reader.fields.names)
    return fault.code in reader.taken and not (fault.code == "chat-empty" and is_whole_row)


def _separators(text: str) -> Iterator[Fault]:
    at = min((text.find(letter) for letter in SEPARATORS if letter in text), default=-1)
    if at >= 0:
        yield Fault(
            code="line-separator",
            message=f"U+{ord(text[at]):04X} stands unescaped, and this trainer ends the line there",
            column=at + 1,
            end=at + 2,
            hint=f"\\u{ord(text[at]):04x} in its place, as Python's json.dumps writes it",
        )


def _placed(finding: rules.Finding, text: str) -> Fault:
    column, end = locate.span(text, finding.path) if text else (1, None)
    where = locate.dotted(finding.path)
    return Fault(finding.code, finding.message, column=column, end=end, where=where, hint=finding.hint)


def _plain(turn: Turn) -> Turn:
    """A message with its content as text, as templates expect it."""
    content = turn.get("content")
    if isinstance(content, list):
        content = " ".join(part["text"] for part in content if isinstance(part, dict) and "text" in part)
    return {**turn, "content": "" if content is None else content}
