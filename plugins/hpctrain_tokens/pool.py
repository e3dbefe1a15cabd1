"""Workers that end with their parent, and whose death is an error rather than a wait.

Each worker has a pipe of its own and reads the next piece from it. When the parent is killed the pipe
ends and so does the worker; when a worker is killed its pipe ends and the parent says so.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from hpctrain_tokens.encoder import Encoder
from hpctrain_tokens.faults import DataError
from hpctrain_tokens.options import Work
from hpctrain_tokens.pieces import Piece
from hpctrain_tokens.shard import Maker, Shard
from hpctrain_tokens.tokenizer import Tokenizer

LEAVE_SECONDS = 10
THREADS = {"TOKENIZERS_PARALLELISM": "false", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def shards(
    work: Work, tokenizer: Tokenizer, folder: Path, key: str, pieces: Sequence[Piece], workers: int
) -> Generator[Shard, None, None]:
    """The shards of `pieces` in order, whoever makes them; closing the iterator ends the workers."""
    with _one_thread():
        make = _Make(work, folder, key, tokenizer)
        while pieces and (workers <= 1 or len(pieces) == 1 or (_is_single_threaded() and not make.ready)):
            yield make(pieces[0])
            pieces = pieces[1:]
        if pieces:
            with _Pool(make, min(workers, len(pieces))) as pool:
                yield from pool.ordered(pieces)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep libraries from threads of their own: the workers are the parallelism."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(THREADS)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _is_single_threaded() -> bool:
    """Whether this process has one thread: a fork has it too, and no lock that another one held."""
    try:
        return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208  (a count of names)
    except OSError:
        return False


class _Make:
    """Shards from pieces. The engines are there from the first piece on, and forked workers inherit them."""

    def __init__(self, work: Work, folder: Path, key: str, tokenizer: Tokenizer | None = None) -> None:
        self._arguments = (work, folder, key)
        self._tokenizer = tokenizer
        self._maker: Maker | None = None

    def fresh(self) -> _Make:
        """This callable for another process, which loads its own tokenizer."""
        return _Make(*self._arguments)

    @property
    def ready(self) -> bool:
        return self._maker is not None

    def __call__(self, piece: Piece) -> Shard:
        work, folder, key = self._arguments
        if self._maker is None:
            self._maker = Maker(Encoder(work, self._tokenizer or work.tokenizer()), folder, key)
        return self._maker.shard(piece)


def _serve(channel: Connection, make: _Make, inherited: Sequence[Connection]) -> None:
    """A worker: pieces in, shards or errors out, until the parent is gone."""
    os.environ.update(THREADS)
    for end in inherited:
        end.close()  # of the parent's: while a worker holds one, its reader does not learn of the end
    while True:
        try:
            piece = channel.recv()
        except (EOFError, KeyboardInterrupt):
            return
        answer: Shard | tuple[str, Any]
        try:
            answer = make(piece)
        except KeyboardInterrupt:
            return
        except DataError as error:
            answer = ("data", error.faults)
        except OSError as error:
            answer = ("os", (error.errno, error.strerror, error.filename))
        except Exception as error:
            answer = ("bug", f"{type(error).__name__}: {error}")
        try:
            channel.send(answer)
        except BrokenPipeError:
            return


class _Pool:
    def __init__(self, make: _Make, count: int) -> None:
        forks = make.ready and _is_single_threaded()
        context: Any = multiprocessing.get_context("fork" if forks else "spawn")
        self.workers: dict[Any, Any] = {}
        for _ in range(count):
            ours, theirs = context.Pipe()
            inherited = (*self.workers, ours) if forks else ()
            worker = context.Process(
                target=_serve, args=(theirs, make if forks else make.fresh(), inherited), daemon=True
            )
            worker.start()
            theirs.close()
            self.workers[ours] = worker

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for channel in self.workers:
            channel.close()
        for worker in self.workers.values():
            worker.terminate()
            worker.join(LEAVE_SECONDS)

    def ordered(self, pieces: Sequence[Piece]) -> Iterator[Shard]:
        """Hand out pieces as workers get free; give shards back in order."""
        todo = iter(pieces)
        busy: dict[Any, Piece] = {}
        done: dict[int, Shard] = {}
        for channel in self.workers:
            _give(channel, todo, busy)
        at, end = pieces[0].number, pieces[-1].number
        while at <= end:
            for channel in wait(list(busy)):
                piece = busy.pop(channel)
                done[piece.number] = self._answer(channel, piece)
                _give(channel, todo, busy)
            while at in done:
                yield done.pop(at)
                at += 1

    def _answer(self, channel: Any, piece: Piece) -> Shard:
        try:
            answer = channel.recv()
        except (EOFError, ConnectionResetError):
            worker = self.workers[channel]
            worker.join(LEAVE_SECONDS)
            code = worker.exitcode
            how = f"signal {-code}" if code is not None and code < 0 else f"exit {code}"
            raise DataError.of(
                "worker-ended",
                f"a worker ended ({how}) at bytes {piece.start} to {piece.stop}",
                file=piece.path,
                hint="run the same command again to resume; if memory ran out, with fewer --workers",
            ) from None
        if isinstance(answer, Shard):
            return answer
        kind, details = answer
        if kind == "data":
            raise DataError(details)
        if kind == "os":
            raise OSError(*details)
        raise RuntimeError(details)


def _give(channel: Any, todo: Iterator[Piece], busy: dict[Any, Piece]) -> None:
    piece = next(todo, None)
    if piece is not None:
        busy[channel] = piece
        channel.send(piece)
