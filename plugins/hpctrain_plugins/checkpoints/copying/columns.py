"""Parts that are columns of the same rows, as tensor-parallel ranks have them: read once for all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import attrs
import numpy as np

from hpctrain_plugins.checkpoints.bands import Band, Strip, join
from hpctrain_plugins.checkpoints.copying.buffers import room_in
from hpctrain_plugins.checkpoints.copying.compute import Chunk, chunks
from hpctrain_plugins.checkpoints.copying.reading import CHUNK
from hpctrain_plugins.checkpoints.output import OutFile, Part
from hpctrain_plugins.checkpoints.tensors import ITEMSIZE, Tensor


@attrs.frozen(eq=False)
class Place:
    """A part by its numbers: of the file, and in the file."""

    file: int
    number: int
    part: Part


@attrs.frozen
class Group:
    """What is read together, and the parts that it is cut into from left to right."""

    tensor: Tensor
    dtype: str
    places: tuple[Place, ...]

    def chunks(self) -> list[Chunk]:
        """What is read at once; whole rows where they are cut."""
        return chunks(self.tensor, self.dtype, self.places[0].part.offset, rows=len(self.places) > 1)

    def pieces(
        self, data: memoryview, start: int, scratch: memoryview
    ) -> Iterator[tuple[Place, int, memoryview]]:
        """The bytes of each part in `data`, and where they go in the part; `data` belongs at byte `start`.

        Columns lie in `scratch`, each until the next one is asked for.
        """
        if len(self.places) == 1:
            yield self.places[0], start, data
            return
        rows, columns = self.tensor.shape
        grid = np.frombuffer(data, np.uint8).reshape(-1, columns * ITEMSIZE[self.dtype])
        row, left = start // grid.shape[1], 0
        for place in self.places:
            width = place.part.size // rows
            piece = room_in(scratch, len(grid) * width, place.part.offset + row * width)
            np.frombuffer(piece, np.uint8).reshape(-1, width)[...] = grid[:, left : left + width]
            yield place, row * width, piece
            left += width


_Key: TypeAlias = "tuple[Path, int, int, str, str]"


def groups(files: Sequence[OutFile]) -> Iterator[Group]:
    """Every part once, in the order of the files; with it the columns beside it in what is read."""
    places = [Place(f, p, part) for f, file in enumerate(files) for p, part in enumerate(file.parts)]
    beside: dict[_Key, list[tuple[Strip, Place]]] = defaultdict(list)
    for place in places:
        tensor = place.part.tensor
        strip = _strip(tensor)
        if strip and strip.file:
            key = (strip.file, strip.stride, tensor.bands[0].count, tensor.dtype, place.part.dtype)
            beside[key].append((strip, place))
    run_of = {place: run for columns in beside.values() for run in _runs(columns) for _, place in run}
    for place in places:
        run = run_of.get(place, [])
        if len(run) < 2:
            yield Group(place.part.tensor, place.part.dtype, (place,))
        elif place is min((p for _, p in run), key=lambda p: (p.file, p.number)):
            yield _together(run)


def _strip(tensor: Tensor) -> Strip | None:
    """The columns that the tensor is of wider rows."""
    if tensor.add is not None or len(tensor.bands) != 1 or len(tensor.bands[0].strips) != 1:
        return None
    strip = tensor.bands[0].strips[0]
    return strip if tensor.bands[0].count > 1 and strip.stride > strip.width else None


def _runs(columns: list[tuple[Strip, Place]]) -> Iterator[list[tuple[Strip, Place]]]:
    """Neighbours whose rows fit the buffers together."""
    run: list[tuple[Strip, Place]] = []
    for strip, place in sorted(columns, key=lambda pair: pair[0].offset):
        first, last = (run[0][0], run[-1][0]) if run else (strip, strip)
        reach = strip.offset + strip.width - first.offset
        if run and (last.offset + last.width != strip.offset or reach > min(CHUNK, strip.stride)):
            yield run
            run = []
        run.append((strip, place))
    if run:
        yield run


def _together(run: list[tuple[Strip, Place]]) -> Group:
    strip, place = run[0]
    part = place.part
    width = sum(s.width for s, _ in run)
    rows = part.tensor.bands[0].count
    bands = join([[Band(rows, (attrs.evolve(strip, width=width),))]])
    tensor = Tensor(part.tensor.name, part.tensor.dtype, (rows, width // part.tensor.itemsize), bands)
    return Group(tensor, part.dtype, tuple(p for _, p in run))
