"""Shards to the trainer's files. What a trainer looks for comes last: nothing is ever half there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from hpctrain_tokens import indexed, nanoset, safely, shard, widths
from hpctrain_tokens.options import Work

Fill = Callable[["_Counted"], None]


@dataclass(frozen=True)
class Destination:
    """Where a result goes: for each stream its files, in the order in which they may appear."""

    prefix: Path
    work: Work

    @property
    def name(self) -> Path:
        """The path, or prefix of paths, that a trainer takes."""
        if self.work.options.compat == "nanotron":
            return self.prefix / "00000_unshuffled.ds"
        return self.of("tokens")

    def of(self, stream: str) -> Path:
        """The name of a stream's pair without `.bin`."""
        middle = "" if stream == "tokens" else f"_{stream}"
        return _plus(self.prefix, f"_{self.work.fields.key}{middle}_document")

    @property
    def manifest(self) -> Path:
        return _plus(self.name, ".manifest.json")

    @property
    def last(self) -> Path:
        """The file whose presence says that all are there."""
        return _plus(self.name, ".index" if self.work.options.compat == "nanotron" else ".idx")

    def files(self) -> list[Path]:
        """All files of the result, `last` at the end."""
        if self.work.options.compat == "nanotron":
            return [self.name, _plus(self.name, ".metadata"), self.last]
        streams = (*(s for s in self.work.streams if s != "tokens"), "tokens")
        return [_plus(self.of(s), end) for s in streams for end in (".bin", ".idx")]


def _plus(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


class _Counted:
    """A file that knows the digest of what was written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self.size += len(data)
        return self._file.write(data)

    @property
    def summary(self) -> dict[str, object]:
        return {"bytes": self.size, "sha256": self._hash.hexdigest()}


class Merger:
    """Writes the files of a destination from the shards of a work folder."""

    def __init__(self, destination: Destination, folder: Path, count: int, tokens: int) -> None:
        self.destination, self.folder, self.count, self.tokens = destination, folder, count, tokens

    def _fill(self, target: Path) -> Fill:
        """What writes the file of this name."""
        if target.suffix == ".metadata":
            return self._metadata
        stream = "tokens"
        for name in self.destination.work.streams:
            if target.stem == self.destination.of(name).name:
                stream = name
        if target.suffix in (".bin", ".ds"):
            return lambda file: self._tokens(stream, file)
        return lambda file: self._index(stream, file)

    def write(self, target: Path, named: Path | None = None) -> dict[str, object]:
        """Write one file whole, which will be `named` later; its size and digest."""
        with safely.written(target) as file:
            counted = _Counted(file)
            self._fill(named or target)(counted)
        return counted.summary

    def _tokens(self, stream: str, file: _Counted) -> None:
        for block in self._blocks(stream, "bin"):
            file.write(block)

    def _index(self, stream: str, file: _Counted) -> None:
        if self.destination.work.options.compat == "nanotron":
            nanoset.write_index(file, self._lengths(stream))
        else:
            indexed.write_index(file, lambda: self._lengths(stream), self.destination.work.code)

    def _metadata(self, file: _Counted) -> None:
        options = self.destination.work.options
        file.write(nanoset.metadata(options.tokenizer, widths.size(self.destination.work.code), self.tokens))

    def _lengths(self, stream: str) -> Iterator[int]:
        return chain.from_iterable(widths.read("i", block) for block in self._blocks(stream, "len"))

    def _blocks(self, stream: str, kind: str) -> Iterator[bytes]:
        for number in range(self.count):
            yield from safely.blocks(shard.path(self.folder, number, f"{stream}.{kind}"))
