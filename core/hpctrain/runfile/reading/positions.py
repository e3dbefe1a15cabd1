"""Where each key and value of a TOML text stands. Asked only after an error or for `--explain`.

tomllib keeps no positions. The text scanned here has been parsed already, or the scan stops at the
first thing it does not know: what it found until then is still good enough to point at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from hpctrain.errors import Span
from hpctrain.runfile.keys import Keys

_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\n]+|#[^\n]*)*")
_COMMA = re.compile(r",?")
_KEY = re.compile(r"[A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'")
_VALUE = re.compile(
    r'"""(?:[^"\\]+|\\.|"(?!""))*"{3,5}'
    r"|'''(?:[^']+|'(?!''))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|[^\s,\[\]{}#\"'](?:[^,\[\]{}#\n]*[^\s,\[\]{}#])?",
    re.DOTALL,
)


class Place(NamedTuple):
    """Offsets of a key and of its value; a table has the place of its name for both."""

    key: tuple[int, int]
    value: tuple[int, int]


class PlacedKey(NamedTuple):
    """One key path with its place; `is_explicit` unless it is only the front of a longer key."""

    path: Keys
    place: Place
    is_explicit: bool


class _Stop(Exception):
    """The text goes on with something the scanner does not know."""


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.rows: dict[Keys, int] = {}

    def take(self, pattern: re.Pattern[str]) -> tuple[int, int]:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise _Stop
        self.at = match.end()
        return match.span()

    def expect(self, mark: str) -> None:
        if not self.text.startswith(mark, self.at):
            raise _Stop
        self.at += len(mark)

    def document(self) -> Iterator[PlacedKey]:
        table: Keys = ()
        self.take(_BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                *fronts, last = self.header()
                table = last.path
                yield from fronts
                yield last
            else:
                yield from self.pair(table)
            self.take(_BLANK)

    def header(self) -> list[PlacedKey]:
        """`[a.b]` or `[[a.b]]`, where the front may lead through the newest row of an array."""
        mark = 2 if self.text.startswith("[[", self.at) else 1
        self.expect("[" * mark)
        parts = self.key()
        self.expect("]" * mark)
        path: Keys = ()
        placed_keys = []
        for number, (name, span) in enumerate(parts, 1):
            path = (*path, name)
            last = number == len(parts)
            placed_keys.append(PlacedKey(path, Place(span, span), last and mark == 1))
            if last and mark == 2:
                self.rows[path] = self.rows.get(path, -1) + 1
            if path in self.rows:
                path = (*path, self.rows[path])
                placed_keys.append(PlacedKey(path, Place(span, span), last and mark == 2))
        return placed_keys

    def key(self) -> list[tuple[str, tuple[int, int]]]:
        parts = []
        while True:
            self.take(_SPACE)
            span = self.take(_KEY)
            parts.append((_plain(self.text[slice(*span)]), span))
            self.take(_SPACE)
            if not self.text.startswith(".", self.at):
                return parts
            self.at += 1

    def pair(self, table: Keys) -> Iterator[PlacedKey]:
        parts = self.key()
        self.expect("=")
        path = table
        for name, span in parts[:-1]:
            path = (*path, name)
            yield PlacedKey(path, Place(span, span), False)
        self.take(_SPACE)
        name, span = parts[-1]
        yield from self.value((*path, name), span)

    def value(self, path: Keys, key: tuple[int, int] | None = None) -> Iterator[PlacedKey]:
        start = self.at
        inside: list[PlacedKey] = []
        if self.text.startswith("[", self.at):
            inside = list(self.array(path))
        elif self.text.startswith("{", self.at):
            inside = list(self.inline(path))
        else:
            self.take(_VALUE)
        span = (start, self.at)
        yield PlacedKey(path, Place(key or span, span), True)
        yield from inside

    def array(self, path: Keys) -> Iterator[PlacedKey]:
        self.expect("[")
        self.take(_BLANK)
        number = 0
        while not self.text.startswith("]", self.at):
            yield from self.value((*path, number))
            number += 1
            self.take(_BLANK)
            self.take(_COMMA)
            self.take(_BLANK)
        self.expect("]")

    def inline(self, path: Keys) -> Iterator[PlacedKey]:
        self.expect("{")
        self.take(_BLANK)
        while not self.text.startswith("}", self.at):
            yield from self.pair(path)
            self.take(_BLANK)
            self.take(_COMMA)
            self.take(_BLANK)
        self.expect("}")


def _plain(key: str) -> str:
    """A key without its quotes and escapes."""
    if key[0] == "'":
        return key[1:-1]
    if key[0] != '"' or "\\" not in key:
        return key.strip('"')
    from hpctrain.runfile.reading.toml import loads  # few keys are written in quotes

    return str(next(iter(loads(f"{key} = 0"))))


def statements(text: str) -> Iterator[PlacedKey]:
    """Every key path in the order of the text, up to the first thing that is not TOML."""
    try:
        yield from _Scanner(text).document()
    except _Stop:
        return


def scan(text: str) -> dict[Keys, Place]:
    """The first place of every key path: leaves, tables, rows and items of arrays."""
    places: dict[Keys, Place] = {}
    for path, place, _ in statements(text):
        places.setdefault(path, place)
    return places


def span_at(file: str, text: str, start: int, stop: int | None = None) -> Span:
    """The span from offset `start` to `stop`, cut at the end of its first line."""
    begin = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    line = text.count("\n", 0, start) + 1
    last = None if stop is None else min(stop, end) - begin + 1
    return Span(file=file, line=line, column=start - begin + 1, end=last, text=text[begin:end])
