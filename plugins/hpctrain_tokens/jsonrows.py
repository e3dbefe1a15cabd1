"""One line of JSON as a row; everything that can be wrong with it has a name and a column."""

from __future__ import annotations

import json
import re
from typing import Any

from hpctrain_tokens.faults import RowError
from hpctrain_tokens.pieces import LONGEST, Lines, Row

try:
    import orjson
except ImportError:  # it comes with the fast engine, and is not needed
    orjson = None  # type: ignore[assignment,unused-ignore]

_ESCAPED_KEY = rb'\\u00[2-7][0-9a-fA-F](?:[^"\\]|\\.){0,%d}"[ \t\r\n]*:'
"""Letters of a key can be written like this, and the key then stands twice unseen."""

OBJECT_HINT = "one object a line is needed: jq -c '{}' FILE > FILE.jsonl"
SHOWN_LETTERS = 40

KINDS = {
    type(None): "null",
    str: "text",
    list: "a list",
    dict: "an object",
}


def describe(value: object) -> str:
    """What a JSON value is, in words."""
    if isinstance(value, (bool, int, float)):
        return f"the number {value}"[:SHOWN_LETTERS] if not isinstance(value, bool) else str(value).lower()
    return KINDS.get(type(value), type(value).__name__)


def parse(row: Row) -> dict[str, Any]:
    """The object on a line; RowError for anything else."""
    if row.values is not None:
        return row.values
    if row.raw is None:
        raise RowError(
            "long-row",
            f"the row is longer than {LONGEST >> 20} MiB",
            hint="split the document",
        )
    if row.raw.isspace():
        raise RowError("blank-row", "the line is blank")
    if (flat := _flat(row.raw)) is not None:
        return flat
    text = decoded(row.raw)
    if not text.strip():
        raise RowError("blank-row", "the line is blank")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _not_json(error, text) from None
    except RecursionError:
        raise RowError("not-json", "objects are nested too deeply") from None
    except ValueError:  # a number of more digits than Python reads
        raise RowError("not-json", "a number has more digits than can be read") from None
    if not isinstance(value, dict):
        hint = OBJECT_HINT.format(".[]") if isinstance(value, list) else ""
        raise RowError("not-object", f"the line is {describe(value)}, an object is needed", hint=hint)
    return value


def _flat(raw: bytes) -> dict[str, Any] | None:
    """The object on a line at five times the speed, where it is certain that both readers agree.

    That is so for objects without others inside whose keys are plain words that stand there once. What
    this reader takes is JSON to the other one too; whatever it does not take, the other one judges.
    """
    if orjson is None:
        return None
    try:
        row = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(row, dict):
        return None
    for key, value in row.items():
        word = key.isascii() and key.isidentifier()
        if not word or isinstance(value, (dict, list)) or raw.count(f'"{key}"'.encode()) != 1:
            return None
    return None if _hides(raw, max(map(len, row), default=0)) else row


def _hides(data: bytes, longest: int) -> bool:
    """Whether a key of at most so many letters may be written with an escape; values hardly ever look so."""
    return rb"\u00" in data and re.search(_ESCAPED_KEY % (len(r"u0065") * longest), data) is not None


def plain(rows: Lines, name: str) -> list[str] | None:
    """The texts of whole lines in one go, where each has this key and nothing but a text behind it;
    None: `parse` has to look at the lines.

    Only what stands between `{"name":` and `}` is read. Where that is one text, the line has no other key.
    """
    if orjson is None or not (name.isascii() and name.isidentifier()):
        return None
    begin, end, texts = f'{{"{name}":'.encode(), b"}\n", []
    data, view, read = rows.data, memoryview(rows.data), orjson.loads
    for start, stop in rows.spans():
        if not (data.startswith(begin, start) and data.endswith(end, start, stop)):
            return None
        try:
            text = read(view[start + len(begin) : stop - 2])
        except ValueError:
            return None
        if type(text) is not str:
            return None
        texts.append(text)
    return texts


def decoded(raw: bytes) -> str:
    """A line as text, its end left out."""
    try:
        return raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        column = len(raw[: error.start].decode("utf-8", "replace")) + 1
        byte = raw[error.start]
        raise RowError(
            "not-utf8",
            f"byte 0x{byte:02x} is not UTF-8",
            column=column,
            end=column + 1,
        ) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RowError("row-duplicate", f'key "{twice}" appears twice; a reader would take the last')
    return row


_DECODER = json.JSONDecoder(object_pairs_hook=_once)
"""One for all lines: `json.loads` with a hook makes one for each."""


def _not_json(error: json.JSONDecodeError, text: str) -> RowError:
    column = error.pos + 1
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        whole = {"[": ".[]", "{": "."}.get(text.strip()[:2], ".[]" if text.lstrip()[:1] == "[" else "")
        hint = OBJECT_HINT.format(whole) if whole else ""  # the file is one value on several lines
        return RowError("truncated-row", "the line ends inside of its JSON", column=len(text) + 1, hint=hint)
    if error.msg.startswith("Invalid control character"):
        number = ord(text[error.pos])
        reason = f"U+{number:04X} appears unescaped, and JSON writes it \\u{number:04x}"
        return RowError("not-json", reason, column=column)
    message = error.msg[:1].lower() + error.msg[1:]
    return RowError("not-json", f"the line is not JSON: {message}", column=column)
