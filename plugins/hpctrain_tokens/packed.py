"""Compressed input, unpacked once into the work folder, so that its pieces can be worked on apart."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from hpctrain_tokens import safely
from hpctrain_tokens.faults import DataError
from hpctrain_tokens.sources import Source

AGAIN = "fetch it again, or pack it again"


def unpack(sources: list[Source], work: Path) -> dict[int, Path]:
    """The plain form of each packed source, by its number; one that is there already is not made again."""
    return {i: _plain(source, work) for i, source in enumerate(sources) if source.packed}


def _plain(source: Source, work: Path) -> Path:
    target = work / f"unpacked-{safely.sha256(source.path)[:24]}"
    if not target.exists():
        with safely.written(target) as file:
            for block in plain(source):
                file.write(block)
    return target


def plain(source: Source) -> Iterator[bytes]:
    """The bytes of a file as they were before it was packed; an early end is an error, never the end."""
    unpack = {"": _as_is, ".gz": _gzip, ".zst": _zstd}[source.packed]
    yield from unpack(source)


def _as_is(source: Source) -> Iterator[bytes]:
    yield from safely.blocks(source.path)


def _gzip(source: Source) -> Iterator[bytes]:
    try:
        with gzip.open(source.path) as file:
            while block := file.read(safely.BLOCK):
                yield block
    except EOFError:
        raise _early(source) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise _broken(source, error) from None


def _zstd(source: Source) -> Iterator[bytes]:
    try:
        import zstandard
    except ModuleNotFoundError as error:
        raise DataError.lacking(error, source.path.name, source.name) from None
    frame = zstandard.ZstdDecompressor().decompressobj()
    begun = False
    try:
        for block in safely.blocks(source.path):
            remainder = block
            while remainder:
                if frame.eof:
                    frame = zstandard.ZstdDecompressor().decompressobj()
                yield frame.decompress(remainder)
                begun, remainder = True, frame.unused_data
    except zstandard.ZstdError as error:
        raise _broken(source, error) from None
    if not begun or not frame.eof:
        raise _early(source)


def _early(source: Source) -> DataError:
    return DataError.of("data-truncated", "the compressed file ends early", file=source.name, hint=AGAIN)


def _broken(source: Source, error: Exception) -> DataError:
    return DataError.of("data-unreadable", f"cannot be unpacked: {error}", file=source.name, hint=AGAIN)
