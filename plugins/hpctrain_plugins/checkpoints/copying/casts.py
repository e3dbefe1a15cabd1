"""Numbers from one floating type to another, rounded to nearest even as torch does it."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from hpctrain.plugin import IntegrityError

Array: TypeAlias = "np.ndarray[Any, Any]"

BLOCK = 1 << 17
"""Elements handled at once: few enough for the second-level cache to hold with their temporaries, and
enough that threads, which hand Python over at every step, do not mostly wait for each other."""

_PLAIN = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16}


def as_array(data: memoryview, dtype: str) -> Array:
    """The bytes as numbers; bf16 stays as its bits."""
    return np.frombuffer(data, _PLAIN[dtype])


def cast(data: memoryview, source: str, target: str, out: memoryview, name: str) -> None:
    """Write `data` as `target` into `out`; refuse a finite value that becomes infinite."""
    have, into = as_array(data, source), as_array(out, target)
    for at in range(0, have.size, BLOCK):
        block = to_float32(have[at : at + BLOCK], source)
        store(block, target, into[at : at + BLOCK], name)


def to_float32(block: Array, source: str) -> Array:
    """The values of an array as float32."""
    if source == "BF16":
        wide = block.astype(np.uint32)
        wide <<= 16
        return wide.view(np.float32)
    return block.astype(np.float32, copy=False)


def store(block: Array, target: str, into: Array, name: str) -> None:
    """Round float32 values to the data type of `into`, and write them there."""
    if target == "BF16":
        _to_bfloat16(block, into, name)
        return
    with np.errstate(over="ignore"):
        into[...] = block
    if target == "F16" and (into.view(np.uint16) & 0x7FFF).max(initial=0) >= 0x7C00:
        _check_finite(block, np.isfinite(into), target, name)


def _to_bfloat16(block: Array, into: Array, name: str) -> None:
    bits = np.ascontiguousarray(block).view(np.uint32)
    odd = bits >> 16
    odd &= 1
    odd += 0x7FFF
    odd += bits
    odd >>= 16
    into[...] = odd
    if not np.vdot(block, block) < np.inf:  # one fast pass; only then does it matter which number it is
        into[np.isnan(block)] = 0x7FC0
        _check_finite(block, (into & 0x7FFF) < 0x7F80, "BF16", name)


def _check_finite(block: Array, fine: Array, target: str, name: str) -> None:
    lost = np.isfinite(block) & ~fine
    if lost.any():
        worst = float(np.abs(block[lost]).max())
        raise IntegrityError.of(
            "checkpoint-overflow",
            f"{name} holds {worst:g}, which {target.lower()} cannot hold",
            where=name,
            hint="--dtype bf16",
        )
