"""The result of one piece, in files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import zlib
from array import array
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from hpctrain_job.files import documents
from hpctrain_tokens import pieces, safely, widths
from hpctrain_tokens.encoder import Blocks, Encoder
from hpctrain_tokens.fast import Differs
from hpctrain_tokens.faults import Fault
from hpctrain_tokens.pieces import Piece


@dataclass
class Shard:
    """What is known of a piece after it was worked on."""

    number: int
    source: int
    content: str = ""
    """What was read and how: the name that a shard is known by."""
    digest: str = ""
    """What was read."""
    rows: int = 0
    documents: int = 0
    tokens: int = 0
    learnt: int = 0
    empty: int = 0
    ends_inside: int = 0
    bad: int = 0
    longest: int = 0
    engine: str = ""
    why_not: str = ""
    """Why the fast engine was not used, where it was asked for."""
    faults: list[dict[str, Any]] = field(default_factory=list)
    lengths: dict[str, int] = field(default_factory=dict)
    """How many documents have a length of so many bits."""
    files: dict[str, int] = field(default_factory=dict)
    """The CRC-32 of each file of this shard: nobody but a failing machine changes them."""
    reused: bool = False
    """Whether an earlier start made it."""

    def parsed_faults(self) -> list[Fault]:
        return [Fault(**fault) for fault in self.faults]


def path(folder: Path, number: int, name: str) -> Path:
    return folder / f"{number:06d}.{name}"


class Maker:
    """Makes shards in a work folder. One in each worker: the tokenizer is read once."""

    def __init__(self, encoder: Encoder, folder: Path, key: str) -> None:
        self.encoder, self.folder, self.key = encoder, folder, key

    def shard(self, piece: Piece) -> Shard:
        """The shard of a piece: what is there already, where its content is what it was; else made."""
        existing = self._reusable(piece)
        if existing is not None:
            return existing
        try:
            return self._make(piece, fast=True)
        except Differs:
            return self._make(piece, fast=False)

    def _reusable(self, piece: Piece) -> Shard | None:
        try:
            document = documents.read(path(self.folder, piece.number, "json"))
            shard = Shard(**document)
            whole = all(safely.crc32(self.folder / name) == number for name, number in shard.files.items())
        except (OSError, ValueError, TypeError):
            return None
        matches = shard.content == self._content(pieces.digest(piece)) and shard.number == piece.number
        return replace(shard, reused=True) if whole and matches else None

    def _content(self, digest: str) -> str:
        return hashlib.sha256(f"{self.key} {digest}".encode()).hexdigest()

    def _make(self, piece: Piece, *, fast: bool) -> Shard:
        path(self.folder, piece.number, "json").unlink(missing_ok=True)
        reading, encoder = pieces.Reading(piece), self.encoder
        encoder.begin(fast=fast)
        shard = Shard(piece.number, piece.source)
        lengths: Counter[int] = Counter()
        with contextlib.ExitStack() as stack:
            out = _Files(self.folder, piece.number, encoder.work.streams, stack)
            for streams in encoder.documents(reading):
                out.add(streams)
                _count(shard, streams["tokens"].lengths, lengths)
            out.finish()
        shard.files = out.checks
        shard.digest = reading.digest
        shard.content = self._content(shard.digest)
        shard.engine, shard.why_not = encoder.engine, encoder.why_not if fast else "a sample disagreed"
        shard.rows, shard.learnt = reading.rows, encoder.learnt
        shard.empty, shard.ends_inside = encoder.empty, encoder.ends_inside
        faults = sorted(encoder.faults, key=lambda fault: fault.line)
        shard.bad, shard.faults = encoder.bad, [fault.plain() for fault in faults]
        shard.lengths = {str(bits): lengths[bits] for bits in sorted(lengths)}
        safely.write(path(self.folder, piece.number, "json"), json.dumps(asdict(shard)).encode(), sync=False)
        return shard


def _count(shard: Shard, document_lengths: array[int], lengths: Counter[int]) -> None:
    shard.documents += len(document_lengths)
    shard.tokens += sum(document_lengths)
    shard.longest = max(shard.longest, *document_lengths, 0)
    lengths.update(map(int.bit_length, document_lengths))


class _Files:
    """The files of one shard: numbers and lengths of each stream."""

    def __init__(
        self, folder: Path, number: int, streams: tuple[str, ...], stack: contextlib.ExitStack
    ) -> None:
        self.names = {
            (stream, kind): path(folder, number, f"{stream}.{kind}")
            for stream in streams
            for kind in ("bin", "len")
        }
        self._open = {
            key: stack.enter_context(safely.written(p, sync=False)) for key, p in self.names.items()
        }
        self._numbers = dict.fromkeys(self.names, 0)
        self._lengths = {stream: array("i") for stream in streams}
        self.checks: dict[str, int] = {}

    def add(self, blocks: Blocks) -> None:
        for stream, block in blocks.items():
            self._write((stream, "bin"), block.data)
            self._lengths[stream].extend(block.lengths)

    def _write(self, key: tuple[str, str], data: bytes | memoryview) -> None:
        self._open[key].write(data)
        self._numbers[key] = zlib.crc32(data, self._numbers[key])

    def finish(self) -> None:
        for stream, lengths in self._lengths.items():
            self._write((stream, "len"), widths.little(lengths))
        self.checks = {p.name: self._numbers[key] for key, p in self.names.items()}
