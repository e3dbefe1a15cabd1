"""nanotron's set: raw tokens in `.ds`, where documents end in `.ds.index`, three lines in `.ds.metadata`."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import accumulate
from operator import gt, sub
from pathlib import Path

from hpctrain_tokens import indexed, widths
from hpctrain_tokens.faults import DataError
from hpctrain_tokens.safely import Sink
from hpctrain_tokens.token_file import TokenFile

SUFFIXES = ("", "k", "M", "G", "T", "P", "E")


def write_index(file: Sink, lengths: Iterator[int]) -> None:
    """Where each document ends, counted in tokens; there is no leading zero."""
    indexed.table(file, "Q", accumulate(lengths))


def metadata(tokenizer: str, width: int, tokens: int) -> bytes:
    """`name|bytes a token`, the number of tokens, and that number for people."""
    return f"{tokenizer}|{width}\n{tokens}\n{_metric(tokens)}".encode()


def _metric(value: int) -> str:
    """Three digits that count, with a prefix, as datatrove writes them: `1.23 MT`."""
    power = min(max(0, (len(str(value)) - 1) // 3), len(SUFFIXES) - 1)
    scaled = value / 1000**power
    digits = max(0, 2 - (len(str(int(scaled))) - 1 if scaled >= 1 else 0))
    return f"{scaled:.{digits}f} {SUFFIXES[power]}T"


class Nanoset(TokenFile):
    """A `.ds` with what lies beside it; every number is checked against the others."""

    def __init__(self, path: Path) -> None:
        starts = array("Q", [0])
        starts.extend(widths.read("Q", _whole(path, ".index")))
        width, tokens = _announced(path)
        size = path.stat().st_size
        if tokens != starts[-1] or width * tokens != size or any(map(gt, starts, starts[1:])):
            message = (
                f"the metadata announces {tokens} tokens, the index {starts[-1]}, the .ds has {size // width}"
            )
            raise DataError.of("data-index", message, file=str(path))
        sizes = array("q", map(sub, starts[1:], starts))
        offsets = array("q", map(width.__mul__, starts[:-1]))
        super().__init__(path, "H" if width == 2 else "I", sizes, offsets)


def _announced(path: Path) -> tuple[int, int]:
    """Bytes of a token and the number of tokens, as the metadata says."""
    lines = _whole(path, ".metadata").decode("utf-8", "replace").split("\n")
    try:
        width, tokens = int(lines[0].rpartition("|")[2]), int(lines[1])
    except (ValueError, IndexError):
        width, tokens = 0, 0
    if width not in (2, 4):
        raise DataError.of("data-index", "this is not nanotron's metadata", file=f"{path}.metadata")
    return width, tokens


def _whole(path: Path, end: str) -> bytes:
    beside = path.with_name(path.name + end)
    if not (path.is_file() and beside.is_file()):
        raise DataError.of("data-index", "a set is a .ds with its .index and .metadata", file=str(path))
    data = beside.read_bytes()
    if end == ".index" and len(data) % 8:
        raise DataError.of("data-index", "the index was cut off", file=str(beside))
    return data
