"""A word or a number of a pickle for another, and all else as it was: nothing is made of the pickle."""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from hpctrain.plugin import IntegrityError
from hpctrain_plugins.checkpoints.containers.torchzip_write import to_pickle

_MEMO = ("BINPUT", "LONG_BINPUT", "MEMOIZE")
_NUMBERS = ("BININT", "BININT1", "BININT2")
_TEXTS = ("BINUNICODE", "SHORT_BINUNICODE", "UNICODE")


def with_number(data: bytes, key: str, number: int, where: str) -> bytes:
    """The pickle whose entry `key` is `number`; it must have just one, in a protocol without frames."""
    operations = [op for op in pickletools.genops(data) if op[0].name not in _MEMO]
    spans = [
        (after[2], behind[2])
        for before, after, behind in zip(operations, operations[1:], operations[2:], strict=False)
        if before[1] == key and after[0].name in _NUMBERS
    ]
    framed = any(op[0].name == "FRAME" for op in operations)
    if framed or len(spans) != 1 or None in spans[0]:
        raise _unusual(key, where)
    start, end = spans[0]
    return data[:start] + b"J" + struct.pack("<i", number) + data[end:]


def with_text(data: bytes, old: str, new: str, where: str) -> bytes:
    """The pickle in which each text `old` is `new`; it must have one, in a protocol without frames."""
    operations = list(pickletools.genops(data))
    spans = [
        (start, end)
        for (kind, value, start), (_, _, end) in pairwise(operations)
        if kind.name in _TEXTS and value == old
    ]
    if not spans or any(kind.name == "FRAME" for kind, _, _ in operations):
        raise _unusual(old, where)
    return b"".join(_replaced(data, spans, _operations_of(new)))


def _replaced(data: bytes, spans: list[tuple[int | None, int | None]], text: bytes) -> Iterator[bytes]:
    at: int | None = 0
    for start, end in spans:
        yield data[at:start] + text
        at = end
    yield data[at:]


def with_entry(data: bytes, key: str, value: Mapping[str, Any], where: str) -> bytes:
    """The pickle of a table, with one entry more."""
    if not data.endswith(b"u."):  # the last that is done to the table: it gets its entries
        raise _unusual(key, where)
    return data[:-2] + _operations_of(key) + _operations_of(value) + b"u."


def _operations_of(value: Any) -> bytes:
    """What puts the value on the stack: its pickle without protocol and end."""
    return to_pickle(value)[2:-1]


def _unusual(key: str, where: str) -> IntegrityError:
    message = f"{where} does not say {key} in the way of torch.save"
    return IntegrityError.of("checkpoint-damaged", message, where=where)
