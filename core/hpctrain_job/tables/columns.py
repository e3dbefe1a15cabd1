"""The columns of data that is on disk, as `datasets` would name them, with the standard library alone."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from hpctrain_job.files import documents
from hpctrain_job.staged import NO_DATA
from hpctrain_job.tables import parquet

FIRST = 10 << 20
"""Characters of a file of rows: `datasets` takes its columns from as many bytes."""
LARGEST = 64 << 20
"""Of a file that can only be read whole."""


class Unreadable(Exception):
    """A file of a kind that is not read here, or broken: nothing can be said of its columns."""


def of(path: Path) -> Iterator[frozenset[str]]:
    """Columns, as they are met: once for a file with a schema, for each row where there is none."""
    if not path.is_dir():
        yield from _file(path)
        return
    for file in sorted(path.rglob("*")):
        hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
        if file.is_file() and not hidden and not file.name.endswith(NO_DATA):
            yield from _file(file)


def _file(path: Path) -> Iterator[frozenset[str]]:
    kind = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    try:
        if kind == ".parquet":
            yield frozenset(parquet.columns(path))
        elif kind in (".jsonl", ".ndjson", ".json"):
            yield from _json(path)
        elif kind in (".csv", ".tsv"):
            with _text(path) as file:
                yield frozenset(next(csv.reader(file, delimiter="\t" if kind == ".tsv" else ","), ()))
        elif kind == ".txt":
            yield frozenset({"text"})
        else:
            raise Unreadable(f"{path.name} is of a kind that is not read here")
    except (OSError, EOFError, ValueError, RecursionError, csv.Error) as error:
        raise Unreadable(f"{path.name}: {error}") from None


def _text(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _json(path: Path) -> Iterator[frozenset[str]]:
    """Rows as lines, or one list of them."""
    with _text(path) as file:
        read = 0
        while read < FIRST and (line := file.readline(LARGEST)):
            read += len(line)
            if line.lstrip().startswith("["):
                remaining = file.read(LARGEST)
                yield from map(_keys, documents.parse(line + remaining))
                return
            if line.strip():
                yield _keys(documents.parse(line))


def _keys(row: Any) -> frozenset[str]:
    if not isinstance(row, dict):
        raise ValueError("a row is no object")  # noqa: TRY004  (all that is wrong with a file is one error)
    return frozenset(row)
