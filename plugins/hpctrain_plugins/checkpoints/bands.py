"""Bytes that lie scattered in files, as data: which to read, in which order, without reading any.

A value is a tuple of bands. A band is `count` rows of equal width; a row is one strip per source,
and each strip moves on by its stride from row to row. Joining shards along any axis, cutting them
and permuting rows are arithmetic on these numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs


@attrs.frozen
class Strip:
    """`width` bytes per row at `offset + row * stride` of `file`; no file means zeros."""

    file: Path | None
    offset: int
    width: int
    stride: int

    def at(self, row: int, left: int = 0, width: int | None = None) -> Strip:
        """This strip from `row` on, without the first `left` bytes of each row."""
        wide = self.width - left if width is None else width
        if self.file is None:
            return Strip(None, 0, wide, wide)
        return Strip(self.file, self.offset + row * self.stride + left, wide, self.stride)


@attrs.frozen
class Band:
    """`count` rows, each the strips side by side."""

    count: int
    strips: tuple[Strip, ...]

    @property
    def width(self) -> int:
        """How many bytes one row of the band has."""
        return self.strips[0].width if len(self.strips) == 1 else sum(s.width for s in self.strips)

    @property
    def size(self) -> int:
        """How many bytes all rows of the band have."""
        return self.count * self.width

    @property
    def flat(self) -> bool:
        """One unbroken range of one file."""
        return self.count == 1 and len(self.strips) == 1


Bands = tuple[Band, ...]


@attrs.frozen
class Checksum:
    """A range of a file whose CRC32 its writer noted down."""

    offset: int
    size: int
    crc: int
    name: str
    noted: str = "its own checksum"
    """In which words a mismatch calls what was noted."""


def flat(file: Path | None, offset: int, size: int) -> Bands:
    """One range of a file; no file means `size` zeros."""
    return (Band(1, (Strip(file, offset, size, size),)),) if size else ()


def size_of(bands: Iterable[Band]) -> int:
    """How many bytes the bands have in total."""
    return sum(b.size for b in bands)


def join(parts: Iterable[Iterable[Band]]) -> Bands:
    """The parts one after the other, neighbours merged."""
    out: list[Band] = []
    for band in (_normal(b) for part in parts for b in part):
        if out and out[-1].flat and band.flat and _adjoin(out[-1].strips[0], band.strips[0]):
            first, second = out[-1].strips[0], band.strips[0]
            wide = first.width + second.width
            out[-1] = Band(1, (Strip(first.file, first.offset, wide, wide),))
        else:
            out.append(band)
    return tuple(out)


def _adjoin(a: Strip, b: Strip) -> bool:
    return a.file == b.file and (a.file is None or a.offset + a.width == b.offset)


def _normal(band: Band) -> Band:
    """A band without gaps between its rows, as one row."""
    if len(band.strips) != 1:
        return band
    only = band.strips[0]
    if band.count > 1 and only.stride == only.width:
        return Band(1, (Strip(only.file, only.offset, band.size, band.size),))
    return band


def cut(bands: Iterable[Band], start: int, stop: int) -> Bands:
    """The bytes `start` to `stop` of the bands."""
    out: list[Band] = []
    for band in bands:
        low, high = max(0, start), min(band.size, stop)
        if low < high:
            out += _cut_band(band, low, high)
        start, stop = start - band.size, stop - band.size
        if stop <= 0:
            break
    return tuple(out)


def _cut_band(band: Band, low: int, high: int) -> Iterator[Band]:
    width = band.width
    row, left = divmod(low, width)
    last, right = divmod(high, width)
    if row == last:
        yield _cut_row(band, row, left, right)
        return
    if left:
        yield _cut_row(band, row, left, width)
        row += 1
    if last > row:
        yield Band(last - row, tuple(s.at(row) for s in band.strips))
    if right:
        yield _cut_row(band, last, 0, right)


def _cut_row(band: Band, row: int, left: int, right: int) -> Band:
    strips = _crop(band.strips, left, right)
    return Band(1, tuple(s.at(row) for s in strips))


def _crop(strips: Iterable[Strip], left: int, right: int) -> tuple[Strip, ...]:
    """The columns `left` to `right` of every row."""
    out = []
    for strip in strips:
        low, high = max(0, left), min(strip.width, right)
        if low < high:
            out.append(strip.at(0, low, high - low))
        left, right = left - strip.width, right - strip.width
    return tuple(out)


def regroup(bands: Bands, width: int) -> Iterator[Band]:
    """The bytes of the bands in rows of `width`, whatever their rows were."""
    at, index = 0, 0
    total = size_of(bands)
    pending: list[Band] = list(bands)
    while at < total:
        band = pending[index]
        if band.width == width:
            taken = band
        elif band.flat and band.width >= width:
            rows = band.width // width
            strip = band.strips[0]
            taken = Band(rows, (Strip(strip.file, strip.offset, width, width),))
        else:
            pieces = cut(pending[index : index + _reach(pending, index, width)], 0, width)
            taken = Band(1, tuple(s for p in pieces for r in range(p.count) for s in _row(p, r)))
        yield taken
        at += taken.size
        index = _advance(pending, index, taken.size)


def _row(band: Band, row: int) -> tuple[Strip, ...]:
    return tuple(s.at(row) for s in band.strips)


def _reach(bands: list[Band], index: int, width: int) -> int:
    """How many bands from `index` hold the next `width` bytes."""
    total = 0
    for n, band in enumerate(bands[index:], 1):
        total += band.size
        if total >= width:
            return n
    return len(bands) - index


def _advance(bands: list[Band], index: int, size: int) -> int:
    """Drop `size` bytes from the front and say where the next band is."""
    while size and index < len(bands):
        band = bands[index]
        if band.size <= size:
            size -= band.size
            index += 1
            continue
        remaining = list(cut((band,), size, band.size))
        bands[index : index + 1] = remaining
        break
    return index


def weave(parts: Iterable[tuple[Bands, int]]) -> Bands:
    """Rows side by side: each part gives its own number of bytes to every row."""
    queues = [list(regroup(bands, width)) for bands, width in parts if width]
    out: list[Band] = []
    heads = [0] * len(queues)
    skip = [0] * len(queues)
    while queues and heads[0] < len(queues[0]):
        bands = [q[h] for q, h in zip(queues, heads, strict=True)]
        rows = min(b.count - s for b, s in zip(bands, skip, strict=True))
        strips = tuple(t.at(s) for b, s in zip(bands, skip, strict=True) for t in b.strips)
        out.append(Band(rows, strips))
        for i, band in enumerate(bands):
            skip[i] += rows
            if skip[i] == band.count:
                heads[i], skip[i] = heads[i] + 1, 0
    return join([out])


def crop(bands: Bands, width: int, left: int, right: int) -> Bands:
    """The bytes `left` to `right` of every row of `width` bytes."""
    return join([[Band(b.count, _crop(b.strips, left, right)) for b in regroup(bands, width)]])


def every(bands: Bands, width: int, start: int, step: int) -> Bands:
    """Each `step`-th row of `width` bytes, from row `start` on."""
    return crop(bands, width * step, width * start, width * (start + 1))


def first_of(bands: Bands) -> int:
    """Where in its file the first byte lies."""
    return bands[0].strips[0].offset if bands else 0


def split(bands: Bands, size: int, first: int = 0) -> Iterator[Bands]:
    """The bytes in pieces of `size`, after one of `first`; the last one smaller."""
    if first:
        yield cut(bands, 0, first)
        bands = cut(bands, first, size_of(bands))
    if len(bands) == 1 and bands[0].flat:  # most tensors, and so most of all pieces
        only = bands[0].strips[0]
        for at in range(0, only.width, size):
            yield (Band(1, (only.at(0, at, min(size, only.width - at)),)),)
        return
    index, pending = 0, list(bands)
    while index < len(pending):
        reach = _reach(pending, index, size)
        piece = cut(pending[index : index + reach], 0, size)
        yield piece
        index = _advance(pending, index, size_of(piece))
