"""Which part of a row is the document: a column of text, several joined, a pair, or messages."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

from hpctrain_tokens.faults import DataError, RowError
from hpctrain_tokens.jsonrows import describe, parse
from hpctrain_tokens.pieces import Piece, Reading
from hpctrain_tokens.sources import Source

BLANK_LINE = "\n\n"
LOOKED_AT = 100
"""Rows that are looked at for the columns; broken ones are passed over and told later."""


@dataclass(frozen=True)
class Fields:
    """`kind` is text, join, pair or messages; `names` are the columns."""

    kind: str
    names: tuple[str, ...]

    def text(self, row: dict[str, Any]) -> str:
        """The document of a row that is text."""
        if self.kind == "join":
            parts = [row.get(name) for name in self.names]
            for name, part in zip(self.names, parts, strict=True):
                _none_or_text(name, part)
            return BLANK_LINE.join(part for part in parts if part)
        return _text(row, self.names[0])

    def messages(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        """The conversation of a row; a pair is one of a user and one of an assistant."""
        if self.kind == "pair":
            said_by = zip(("user", "assistant"), self.names, strict=True)
            return [{"role": role, "content": _text(row, name)} for role, name in said_by]
        name = self.names[0]
        value = _get(row, name)
        if not isinstance(value, list) or not all(isinstance(turn, dict) for turn in value):
            raise RowError(
                "not-messages", f'"{name}" is {describe(value)}, a list of messages is needed', where=name
            )
        if not value:
            raise RowError("chat-empty", f'"{name}" has no messages', where=name)
        return value

    @property
    def key(self) -> str:
        """The name of the field as it appears in names of files."""
        return "text" if self.kind in ("join", "pair") else self.names[0]


def _get(row: dict[str, Any], name: str) -> Any:
    if name not in row:
        keys = ", ".join(map(str, row)) or "none"
        raise RowError("row-key", f'there is no "{name}"; the keys are: {keys[:80]}', where=name)
    return row[name]


def _text(row: dict[str, Any], name: str) -> str:
    value = _get(row, name)
    if not isinstance(value, str):
        raise RowError("not-text", f'"{name}" is {describe(value)}, text is needed', where=name)
    return encodable(value, name)


def _none_or_text(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, str):
        raise RowError("not-text", f'"{name}" is {describe(value)}, text is needed', where=name)
    if value:
        encodable(value, name)


def encodable(text: str, name: str) -> str:
    """`text`, when it is text that can be written: half of a surrogate pair cannot."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        raise RowError("surrogate", f'"{name}" holds {half}, half of a character', where=name) from None
    return text


def find(sources: list[Source], pieces: list[Piece], column: str, join: tuple[str, ...]) -> Fields:
    """The fields that were asked for, or `text`, or `messages`, in the first rows that can be read."""
    if join:
        return Fields("join", join)
    if all(source.kind == "text" for source in sources):
        return Fields("text", ("text",))
    columns = columns_of(pieces)
    name = column or next((name for name in ("text", "messages") if name in columns), "")
    if not columns:  # no row can be read; reading them says why
        return Fields("text", (column or "text",))
    if name not in columns:
        requested = f'"{column}"' if column else '"text" or "messages"'
        listing = ", ".join(columns)
        message = f"no column {requested}; the columns are: {listing}"
        raise DataError.of("no-column", message, file=sources[0].name, hint="--text-column NAME")
    return Fields("messages" if isinstance(columns[name], list) else "text", (name,))


def columns_of(pieces: list[Piece]) -> dict[str, Any]:
    """The columns of the input, each with a value of it."""
    for piece in pieces:
        columns: dict[str, Any] = {}
        for row in islice(Reading(piece), LOOKED_AT):
            try:
                value = parse(row)
            except RowError:
                continue
            for key, cell in value.items():
                if columns.get(key) is None:
                    columns[key] = cell
            if piece.content:  # a table has all its columns in every row
                break
        if columns:
            return columns
    return {}
