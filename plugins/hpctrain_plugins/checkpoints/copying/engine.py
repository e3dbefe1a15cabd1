"""Carries out an output: threads that read, cast and write chunks in bounded buffers."""

from __future__ import annotations

import errno
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import attrs

from hpctrain.plugin import IntegrityError
from hpctrain_plugins.checkpoints.bands import Checksum, cut, first_of
from hpctrain_plugins.checkpoints.copying.columns import Group, Place, groups
from hpctrain_plugins.checkpoints.copying.compute import Chunk, Factors, Producer, chunks, is_equal
from hpctrain_plugins.checkpoints.copying.crc import checksum, combine
from hpctrain_plugins.checkpoints.copying.reading import Ledger, Reader
from hpctrain_plugins.checkpoints.copying.writeback import Writeback
from hpctrain_plugins.checkpoints.copying.writing import Writer, put
from hpctrain_plugins.checkpoints.output import OutFile
from hpctrain_plugins.checkpoints.tensors import Tensor

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with bytes done, bytes in all, and the file being written."""


@attrs.frozen
class Pair:
    """Two tensors that must hold the same bytes once the left one has the right one's type."""

    left: Tensor
    right: Tensor
    label: str


class Worker:
    """The files and buffers of one thread of the copy."""

    def __init__(self, ledger: Ledger, factors: Factors, on_disk: frozenset[Path]) -> None:
        self.reader = Reader(ledger, on_disk)
        self.producer = Producer(self.reader, factors)
        self.second_producer = Producer(self.reader, factors)
        self.writer = Writer()

    def close(self) -> None:
        """Close every file."""
        self.reader.close()
        self.writer.close()


Task: TypeAlias = Callable[[Worker], None]


def run(tasks: Iterator[Task], ledger: Ledger, threads: int, on_disk: frozenset[Path] = frozenset()) -> None:
    """Do all tasks with `threads` workers; the first error stops all of them.

    The files `on_disk` are read from the disk itself.
    """
    lock, stop = threading.Lock(), threading.Event()
    failures: list[BaseException] = []
    factors = Factors()

    def work() -> None:
        worker = Worker(ledger, factors, on_disk)
        try:
            while not stop.is_set():
                with lock:
                    task = next(tasks, None)
                if task is None:
                    return
                task(worker)
        except BaseException as error:
            failures.append(error)
            stop.set()
        finally:
            worker.close()

    crew = [threading.Thread(target=work, daemon=True) for _ in range(threads - 1)]
    for thread in crew:
        thread.start()
    work()
    for thread in crew:
        thread.join()
    if failures:
        raise failures[0]


class Copy:
    """Writes files into `root` and knows the checksum of every part afterwards."""

    def __init__(
        self,
        root: Path,
        files: Sequence[OutFile],
        progress: Progress | None,
        writeback: Writeback | None = None,
        *,
        direct: bool = False,
    ) -> None:
        self._files = files
        self._paths = [root / f.name for f in files]
        self._progress = progress
        self._writeback = writeback
        self._direct = direct
        self._lock = threading.Lock()
        # One writer to a file at a time: in the kernel a second one would spin for the file's lock, and
        # where a block is larger than a page, what goes past the cache and what goes into it must not meet.
        self._writing = [threading.Lock() for _ in files]
        self._done = 0
        self._total = sum(f.size for f in files)
        self._crcs: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)

    def allocate(self) -> None:
        """Reserve every file's room first: a full disk is found before anything is read."""
        for file, path in zip(self._files, self._paths, strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as out:
                _reserve(out.fileno(), file.size)

    def tasks(self) -> Iterator[Task]:
        """One task per chunk, file by file."""
        for group in groups(self._files):
            for chunk in group.chunks():
                yield self._task(group, chunk)

    def _task(self, group: Group, chunk: Chunk) -> Task:
        def do(worker: Worker) -> None:
            first = group.places[0].part.offset + chunk.target_start
            data, crc = worker.producer.produce(chunk, first)
            scratch = worker.reader.scratch
            for place, start, piece in group.pieces(data, chunk.target_start, scratch):
                piece_crc = crc if piece is data else None
                self._put(worker, place, start, piece, checksum(piece) if piece_crc is None else piece_crc)

        return do

    def _put(self, worker: Worker, place: Place, start: int, data: memoryview, crc: int) -> None:
        path = self._paths[place.file]
        with self._writing[place.file]:
            cached = worker.writer.write(path, place.part.offset + start, data, direct=self._direct)
        with self._lock:
            self._crcs[place.file, place.number].append((start, len(data), crc))
            self._done += len(data)
            if self._writeback:
                self._writeback.note(path, cached)
            if self._progress:
                self._progress(self._done, self._total, self._files[place.file].name)

    def crcs(self, f: int) -> list[int]:
        """The checksum of each part of one file."""
        return [self._crc(f, p) for p in range(len(self._files[f].parts))]

    def _crc(self, f: int, p: int) -> int:
        crc = 0
        for _, size, piece in sorted(self._crcs[f, p]):
            crc = combine(crc, piece, size)
        return crc

    def seal(self) -> list[list[int]]:
        """Write the fixed text and what depends on checksums; those of each part of each file."""
        crcs = [self.crcs(f) for f in range(len(self._files))]
        for file, path, file_crcs in zip(self._files, self._paths, crcs, strict=True):
            texts = [*file.texts, *(file.seal(file_crcs) if file.seal else ())]
            with path.open("r+b") as out:
                for offset, text in texts:
                    put(out.fileno(), offset, memoryview(text))
        return crcs


def uncertain(
    files: Mapping[Path, OutFile],
    crcs: Mapping[Path, Sequence[int]],
    noted: Mapping[Path, Sequence[Checksum]],
) -> dict[Path, list[Checksum]]:
    """Which of the checksums that written files note are not proven by comparing the files with the source.

    Bytes that are equal to the source have the checksum that was made of them on their way. Left are
    checksums of anything else, and those of padding, which nothing compares.
    """
    compared = {
        (path, part.offset, part.size, crc)
        for path, file in files.items()
        for part, crc in zip(file.parts, crcs[path], strict=True)
        if not _is_padded(part.tensor)
    }
    left = {
        path: [e for e in entries if (path, e.offset, e.size, e.crc) not in compared]
        for path, entries in noted.items()
    }
    return {path: entries for path, entries in left.items() if entries}


def _is_padded(tensor: Tensor) -> bool:
    return any(strip.file is None for band in tensor.bands for strip in band.strips)


def compare(pairs: Sequence[Pair]) -> Iterator[Task]:
    """Tasks that refuse pairs whose bytes differ."""
    for pair in pairs:
        if pair.left.shape != pair.right.shape:
            raise _differ(pair)
        for left in chunks(pair.left, pair.right.dtype, first_of(pair.right.bands)):
            start = left.target_start
            stop = start + left.size // pair.left.itemsize * pair.right.itemsize
            right_bands = cut(pair.right.bands, start, stop)
            yield _comparison(pair, left, Chunk(pair.right, pair.right.dtype, start, right_bands))


def _comparison(pair: Pair, left: Chunk, right: Chunk) -> Task:
    def do(worker: Worker) -> None:
        left_bytes, _ = worker.producer.produce(left)
        right_bytes, _ = worker.second_producer.produce(right, right.offset)
        if not is_equal(left_bytes, right_bytes):
            raise _differ(pair)

    return do


def _differ(pair: Pair) -> Exception:
    files = sorted({str(s.file) for t in (pair.left, pair.right) for d in t.bands for s in d.strips})
    return IntegrityError.of(
        "checkpoint-replicas",
        f"{pair.left.name} differs between {pair.label}",
        where=pair.left.name,
        notes=tuple(files),
    )


def _reserve(fd: int, size: int) -> None:
    try:
        if size:
            os.posix_fallocate(fd, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise
        os.truncate(fd, size)
