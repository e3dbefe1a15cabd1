"""nanotron's set: raw tokens in `.ds`, where documents end in `.ds.index`, three lines in `.ds.metadata`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from hpctrain_tokens import indexed
from hpctrain_tokens.safely import Sink

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
