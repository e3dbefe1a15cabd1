"""From inputs to the trainer's files: the one way there, for the command line and for a step of a plan.

Every piece of the input becomes a shard in a hidden work folder beside the result. The folder is named
by the options, a shard by its content: a second start, with any number of workers, goes on where the
first one ended, and the bytes of the result depend on nothing else.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpctrain_tokens import fields, manifest, options, packed, pieces, pool, safely, sources
from hpctrain_tokens.bad_rows import SOME, Ledger
from hpctrain_tokens.faults import DataError
from hpctrain_tokens.merge import Destination, Merger
from hpctrain_tokens.options import Options, Work
from hpctrain_tokens.pieces import Piece
from hpctrain_tokens.shard import Shard
from hpctrain_tokens.tokenizer import Tokenizer
from hpctrain_tokens.work_lock import lock

Tell = Callable[[int, int, int], None]
"""Called before the work and after each piece with bytes read, bytes in all, and the tokens that were made;
those of pieces that an earlier start made do not count, so that a rate can be told."""


def quiet(*_: int) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class Request:
    """Where the data is, where the result goes, and how the work is done."""

    inputs: tuple[str, ...]
    output: str
    options: Options
    subset: str = ""
    split: str = ""
    revision: str = ""
    workers: int = 1
    """0: as many as this job has cores."""
    work: str = ""
    """The folder that a hidden one with unfinished work lies in; empty: beside the result."""
    on_bad: str = "error"
    max_bad: int = 100
    """With `skip`: more bad rows than this are an error all the same."""
    force: bool = False
    model_vocabulary: int = 0
    """The rows of the model's embedding; a larger token is refused before any work."""


def prepare(request: Request, tell: Tell = quiet) -> dict[str, Any]:
    """Make the files, or find that they are there; the manifest, which lies beside them."""
    prefix = options.prefix_of(request.output)
    prefix.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(request.work or prefix.parent) / f".{prefix.name}.work"
    with lock(folder, prefix):
        try:
            preparation = _Preparation(request, folder)
            destination = Destination(prefix, preparation.work)
            result = preparation.reused(destination)
            if result is None:
                result = preparation.finish(destination, *preparation.shards(tell))
            return {**result, "prefix": str(destination.name), "reused": "reused" in result}
        except BaseException as error:
            _leave(folder, 1 if isinstance(error, DataError) else 0)
            raise


def count(request: Request, tell: Tell = quiet) -> dict[str, Any]:
    """What the manifest would say, and no files."""
    with tempfile.TemporaryDirectory(prefix="hpctrain-count-") as folder:
        preparation = _Preparation(request, Path(folder))
        return preparation.manifest(*preparation.shards(tell), {})


def fits(tokenizer: Tokenizer, rows: int) -> None:
    """Refuse a tokenizer that the model has no rows for."""
    if rows and tokenizer.vocabulary > rows:
        message = f"the tokenizer has {tokenizer.vocabulary} tokens, the model's vocabulary is {rows}"
        raise DataError.of("vocabulary", message, file=str(tokenizer.path))


def cores(workers: int) -> int:
    """How many processes to start: `workers`, at most the cores that this job may use; 0 means all of
    these."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(workers or available, available)


def _remove(top: Path) -> None:
    """Take the folder of unfinished work away; the folder that it was to lie in stays when it holds more."""
    shutil.rmtree(top)
    with suppress(OSError):
        top.parent.rmdir()


def _leave(folder: Path, useless: int) -> None:
    """Keep finished work for the next start; a folder without any goes. Of a single piece with bad rows
    nothing can be used again, they will be repaired."""
    if folder.is_dir() and len(list(folder.glob("*/*.json"))) <= useless:
        shutil.rmtree(folder, ignore_errors=True)


class _Preparation:
    """Everything looked up before the work; `top` is the work folder."""

    def __init__(self, request: Request, top: Path) -> None:
        self.request, self.top = request, top
        self.tokenizer = Tokenizer.at(request.options.tokenizer, request.options.special)
        fits(self.tokenizer, request.model_vocabulary)
        self.sources = sources.find(request.inputs, request.subset, request.split, request.revision)
        top.mkdir(parents=True, exist_ok=True)
        self.pieces = pieces.divide(self.sources, packed.unpack(self.sources, top))
        if not self.pieces:
            raise DataError.of("no-rows", "there are no rows", file=self.sources[0].name, hint=SOME)
        chosen = fields.find(self.sources, self.pieces, request.options.column, request.options.join)
        self.work: Work = options.work(request.options, chosen, self.tokenizer)
        self.key = self.work.key(self.tokenizer)
        self.folder = top / self.key[:12]

    def reused(self, destination: Destination) -> dict[str, Any] | None:
        """The manifest of an earlier result of the same content; an error when another one lies there."""
        if not destination.last.exists() or self.request.force:
            return None
        record = manifest.read(destination.manifest)
        if not self._matches(record):
            reason = (
                "is of other data or options"
                if record
                else "has no manifest that tells what it was made from"
            )
            raise DataError.of(
                "data-exists",
                f"{destination.last.name} is there and {reason}",
                file=str(destination.last),
                hint="another --output-prefix, or --force to replace it",
            )
        Ledger.of(record, self.request.on_bad, self.request.max_bad)
        manifest.whole(record, destination.manifest.parent)
        _remove(self.top)
        return {**record, "reused": True}

    def _matches(self, record: Mapping[str, Any]) -> bool:
        """Whether a manifest is of these data and options."""
        has_same_key = record.get("key") == self.key
        return has_same_key and record["inputs"] == self._inputs(map(pieces.digest, self.pieces))

    def shards(self, tell: Tell) -> tuple[list[Shard], Ledger]:
        """Every piece worked on, and what was wrong."""
        self.folder.mkdir(exist_ok=True)
        ledger = Ledger(self.sources, self.request.on_bad, self.request.max_bad)
        shards: list[Shard] = []
        sizes = _sizes(self.pieces)
        total, read, tokens = sum(sizes), 0, 0
        tell(read, total, tokens)
        with closing(
            pool.shards(
                self.work, self.tokenizer, self.folder, self.key, self.pieces, cores(self.request.workers)
            )
        ) as results:
            for shard, size in zip(results, sizes, strict=True):
                ledger.add(shard)
                shards.append(shard)
                read, tokens = read + size, tokens + (0 if shard.reused else shard.tokens)
                tell(read, total, tokens)
        if not any(shard.tokens for shard in shards):
            raise ledger.nothing(self.sources[0].name)
        return shards, ledger

    def finish(self, destination: Destination, shards: Sequence[Shard], ledger: Ledger) -> dict[str, Any]:
        """The result from the shards: the index gets its name when all else is on the disk."""
        merger = Merger(destination, self.folder, len(shards), sum(s.tokens for s in shards))
        *before, last = destination.files()
        last.parent.mkdir(parents=True, exist_ok=True)
        hidden = last.with_name(f".{last.name}")
        for old in reversed(destination.files()):
            old.unlink(missing_ok=True)
        for path in (*before, hidden, destination.manifest):
            safely.sweep(path)
        written = {path.name: merger.write(path) for path in before}
        written[last.name] = merger.write(hidden, last)
        result = self.manifest(shards, ledger, written)
        manifest.write(destination.manifest, result)
        safely.settle(last.parent)
        hidden.replace(last)
        safely.settle(last.parent)
        _remove(self.top)
        return result

    def manifest(
        self, shards: Sequence[Shard], ledger: Ledger, written: Mapping[str, object]
    ) -> dict[str, Any]:
        """What the result is made from and holds."""
        inputs = self._inputs(shard.digest for shard in shards)
        return manifest.of(self.work, self.tokenizer, self.key, inputs, shards, ledger, written)

    def _inputs(self, digests: Iterable[str]) -> list[dict[str, Any]]:
        return manifest.inputs(self.sources, self.pieces, digests)


def _sizes(pieces: Sequence[Piece]) -> list[int]:
    """The bytes of each piece; of files that hold columns, its share of them."""
    units: Counter[str] = Counter()
    for piece in pieces:
        units[piece.path] += piece.stop - piece.start
    file_sizes = {path: Path(path).stat().st_size for path in units}
    return [(piece.stop - piece.start) * file_sizes[piece.path] // units[piece.path] for piece in pieces]
