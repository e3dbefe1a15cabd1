"""One number of a pickle for another, and all else as it was: nothing is made of the pickle."""

from __future__ import annotations

import pickletools
import struct

from hpctrain.plugin import IntegrityError

_MEMO = ("BINPUT", "LONG_BINPUT", "MEMOIZE")
_NUMBERS = ("BININT", "BININT1", "BININT2")


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
        message = f"{where} does not say {key} in the way of torch.save"
        raise IntegrityError.of("checkpoint-damaged", message, where=where)
    start, end = spans[0]
    return data[:start] + b"J" + struct.pack("<i", number) + data[end:]
