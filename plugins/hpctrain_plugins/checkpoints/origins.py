"""From which tensors of the source a tensor is made, and how: what a person checks a conversion by."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from itertools import accumulate
from pathlib import Path

from hpctrain_plugins.checkpoints.output import Part
from hpctrain_plugins.checkpoints.tensors import ITEMSIZE, LowRank, Origin, Plus, Tensor


def trace(tensor: Tensor) -> list[Origin]:
    """The tensors of the source that it holds bytes of, in their order; what is added comes last."""
    spans: dict[Path, list[tuple[int, int]]] = defaultdict(list)
    for band in tensor.bands:
        for strip in band.strips:
            if strip.file is not None:
                stop = strip.offset + (band.count - 1) * strip.stride + strip.width
                spans[strip.file].append((strip.offset, stop))
    reach = {file: _Reach(intervals) for file, intervals in spans.items()}
    direct = [o for o in tensor.origins if o.file in reach and reach[o.file].meets(o)]
    return direct + [o for addend in added(tensor) for o in trace(addend)]


class _Reach:
    """The spans of one file, sorted once for many look-ups: a tensor may have thousands of parts."""

    def __init__(self, spans: list[tuple[int, int]]) -> None:
        spans.sort()
        self._starts = [start for start, _ in spans]
        self._stops = list(accumulate((stop for _, stop in spans), max))

    def meets(self, origin: Origin) -> bool:
        before = bisect_left(self._starts, origin.offset + origin.size)
        return before > 0 and self._stops[before - 1] > origin.offset


def added(tensor: Tensor) -> tuple[Tensor, ...]:
    """The tensors that are added to this one."""
    if isinstance(tensor.add, LowRank):
        return tensor.add.up, tensor.add.down
    return tensor.add.addends if isinstance(tensor.add, Plus) else ()


def exactness(part: Part) -> str:
    """How values were changed by a conversion: `exact`, `rounded` or `arithmetic`."""
    if part.tensor.add is not None:
        return "arithmetic"
    return "rounded" if ITEMSIZE[part.dtype] <= _size(part) and part.dtype != part.tensor.dtype else "exact"


def _size(part: Part) -> int:
    return ITEMSIZE[part.tensor.dtype]


def how(part: Part, sources: list[Origin]) -> str:
    """What happens to the bytes on their way, in a few words; `copied` when nothing does."""
    tensor = part.tensor
    if isinstance(tensor.add, LowRank):
        return "adapter merged"
    if isinstance(tensor.add, Plus):
        return f"sum of {1 + len(tensor.add.addends)}"
    file_bytes = sum(s.width * b.count for b in tensor.bands for s in b.strips if s.file is not None)
    words = {
        "zeros": not sources,
        "split": file_bytes < sum(o.size for o in sources),
        f"joined of {len(sources)}": len(sources) > 1,
        "rows reordered": tensor.reordered,
        "padded": 0 < file_bytes < tensor.nbytes,
        "rounded": exactness(part) == "rounded",
        "widened": ITEMSIZE[part.dtype] > _size(part),
    }
    return ", ".join(word for word, holds in words.items() if holds) or "copied"
