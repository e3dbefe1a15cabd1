"""What is done with many numbers at once; numpy comes with the fast engine, and only here."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hpctrain_tokens.blocks import Block, Rule

UNKNOWN, STRANGE, TRUSTED = range(3)
LETTERS = 0x110000
"""As many as Unicode has room for."""

PART = 1 << 15
MANY = 1024
"""So many parts are joined as bytes first: numpy takes longer for each of them."""

ASCII = 0x80
"""So many bytes are characters by themselves."""


class Letters:
    """A table of characters: which of them both engines treat alike."""

    def __init__(self, compare: Callable[[Sequence[str]], list[bool]]) -> None:
        self._compare = compare
        self._table = np.zeros(LETTERS, "u1")

    def trusted(self, texts: Sequence[str]) -> list[bool]:
        """For each text, whether both engines are known to agree on its characters."""
        return [text.isascii() or all(map(self._all_trusted, _parts(text))) for text in texts]

    def _all_trusted(self, text: str) -> bool:
        """Whether all of these are trusted; those that were never met are looked up."""
        letters = np.frombuffer(text.encode("utf-32-le"), "<u4")
        letters = letters[letters >= ASCII]
        states = self._table[letters]
        if not states.all():
            new = sorted({*letters[states == UNKNOWN].tolist()})  # np.unique takes 30 ms when first called
            self._table[new] = np.where(self._compare([*map(chr, new)]), TRUSTED, STRANGE)
            states = self._table[letters]
        return bool((states == TRUSTED).all())


def _parts(text: str) -> Iterator[str]:
    """A text, some of it at a time: its characters need four times the memory when they are looked at."""
    return (text[i : i + PART] for i in range(0, len(text), PART))


def numbers(document: array[int]) -> Any:
    """Numbers of the reference, as the fast engine has its own."""
    return np.frombuffer(document, "u4")


def joined(parts: Sequence[Any]) -> Any:
    """The numbers of a document that was cut."""
    return np.concatenate(parts)


def block(documents: Sequence[Any], rule: Rule) -> Block:
    """One block of documents, as `blocks.block` makes it, for numbers in numpy vectors."""
    sizes = [len(document) for document in documents]
    tokens = _flat(documents, rule)
    inside: list[int] = []
    if rule.end is not None and np.count_nonzero(tokens == rule.end) > len(sizes) - sizes.count(0):
        inside = [i for i, d in enumerate(documents) if np.count_nonzero(d == rule.end) > rule.usual]
        if rule.refuse:
            left = set(inside)
            documents = [d for i, d in enumerate(documents) if i not in left]
            tokens = _flat(documents, rule)
    ended = rule.end is not None
    lengths = array("i", [len(d) + ended if len(d) else 0 for d in documents if rule.empty or len(d)])
    return Block(tokens.data, lengths, sizes.count(0), tuple(inside))


def _flat(documents: Sequence[Any], rule: Rule) -> Any:
    """All numbers as they are stored, the end behind each document that has any."""
    kind = np.dtype(rule.code).newbyteorder("<")
    parts = [document for document in documents if len(document)]
    if rule.end is not None:
        end = np.array([rule.end], "u4")
        parts = [part for document in parts for part in (document, end)]
    if len(parts) > MANY:
        parts = [np.frombuffer(b"".join(parts), "u4")]
    return np.concatenate([np.zeros(0, "u4"), *parts], dtype=kind, casting="unsafe")
