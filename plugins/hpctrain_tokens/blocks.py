"""Documents of a batch as the bytes of their numbers, one behind the other, each with its end."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

from hpctrain_tokens import widths


@dataclass(frozen=True)
class Rule:
    """What happens to the numbers of each document."""

    code: str
    """The array type code that they are stored in."""
    end: int | None
    """The number behind each document; None: nothing is put there."""
    usual: int
    """How often the tokenizer itself puts that number into a document."""
    refuse: bool
    """Whether documents that hold it in their own text are left out."""
    empty: bool
    """Whether a document without numbers is one."""


@dataclass(frozen=True)
class Block:
    """Little-endian numbers of documents, and how many each has."""

    data: bytes | memoryview
    lengths: array[int]
    empty: int = 0
    """Documents that had no numbers."""
    inside: tuple[int, ...] = field(default=())
    """Which of the given documents hold the end in their text, from 0."""


def block(documents: Iterable[array[int]], rule: Rule) -> Block:
    """The numbers of documents in one block, each ended as the rule demands."""
    flat, lengths = array(rule.code), array("i")
    empty, inside = 0, []
    for i, numbers in enumerate(documents):
        if not numbers:
            empty += 1
            if rule.empty:
                lengths.append(0)
            continue
        if rule.end is not None:
            if numbers.count(rule.end) > rule.usual:
                inside.append(i)
                if rule.refuse:
                    continue
            numbers.append(rule.end)
        flat.extend(numbers)
        lengths.append(len(numbers))
    return Block(widths.little(flat), lengths, empty, tuple(inside))
