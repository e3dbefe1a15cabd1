"""A section of help and of the pages: a table of a file, or a class, with a row for each key or member."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import attrs
from attrs import frozen

WIDTH = 100
ANY = "NAME"
"""The part of a path that is a name of the user's own."""


@frozen(kw_only=True)
class Row:
    """One key of a table, field or method of a class, or member of an enum."""

    name: str
    kind: str = ""
    default: str = ""
    needed: bool = False
    meaning: str = ""


@frozen(kw_only=True)
class Section:
    """A table of a file or a class; `topics` are what people ask for."""

    title: str
    text: str
    rows: tuple[Row, ...]
    topics: tuple[str, ...]
    file: str = ""
    """The file whose table it is; "" for a class."""
    path: tuple[str, ...] = ()
    """The keys that lead to the table; of a class its name."""

    def on_row(self, topic: str) -> Section | None:
        """What it says of one key, asked for by its name or with its path; None where it has no such key."""
        *path, name = topic.lower().split(".")
        if path and not _leads(path, self.path):
            return None
        rows = tuple(row for row in self.rows if row.name.partition("(")[0].lower() == name)
        return attrs.evolve(self, rows=rows, text="") if rows else None


def plain(section: Section, columns: int = WIDTH) -> Iterator[str]:
    """A section as lines for a terminal of so many columns; longer ones than WIDTH are hard to read."""
    width = min(columns, WIDTH)
    yield f"{section.title} of {section.file}" if section.file else section.title
    yield ""
    if section.text:
        yield from _wrapped(section.text, "", width)
        yield ""
    for row in section.rows:
        notes = [row.kind, "needed" if row.needed else "", f"default {row.default}" if row.default else ""]
        yield from _wrapped(f"{row.name}   {', '.join(filter(None, notes))}", "  ", width)
        yield from _wrapped(row.meaning, "      ", width)
    yield ""


def _leads(path: list[str], table: tuple[str, ...]) -> bool:
    """Whether the keys before the last lead to the table; any word stands for a name of the user's own."""
    pairs = zip(path, table, strict=False)
    return len(path) == len(table) and all(part in (key.lower(), ANY) or key == ANY for part, key in pairs)


def _wrapped(text: str, indent: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
