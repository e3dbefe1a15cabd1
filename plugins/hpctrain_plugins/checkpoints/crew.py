"""The processes that carry out one conversion together, and how each learns that the others are done.

They share nothing but the folder that is written. In it each leaves what the others wait for, and a sign
of life: who has none for a while is dead, and then nobody waits, and nothing is published.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import platform
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hpctrain.plugin import ConfigError, HpctrainError
from hpctrain_job.files import documents
from hpctrain_plugins.checkpoints.copying.publishing import hidden_name, private_folder

_ROOM = ".ranks"
_EVERY = 2.0
_SILENT = 120.0
"""Seconds without a sign of life; a file system of many machines may show a new file a minute late."""


class Crew:
    """One process of `count`; the first leads: it makes the folder, and gives it its name in the end."""

    def __init__(self, rank: int = 0, count: int = 1, key: str = "") -> None:
        self.rank, self.count, self._key = rank, count, key
        self._room = Path()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def leads(self) -> bool:
        """Whether this is the process that publishes."""
        return self.rank == 0

    def share(self, sizes: Sequence[int]) -> list[int]:
        """The numbers of those that this process takes, when the largest go first to who has least."""
        loads: list[tuple[int, int]] = [(0, rank) for rank in range(self.count)]
        share = []
        for number in sorted(range(len(sizes)), key=lambda n: (-sizes[n], n)):
            load, rank = min(loads)
            loads[loads.index((load, rank))] = (load + sizes[number], rank)
            if rank == self.rank:
                share.append(number)
        return sorted(share)

    @contextmanager
    def folder(self, out: Path) -> Iterator[Path]:
        """The folder that all write to; the leader's goes when its work fails, or that of another."""
        if self.count == 1:
            with private_folder(out) as folder:
                yield folder
            return
        if self.leads:
            with private_folder(out, self._key) as folder:
                (folder / _ROOM).mkdir()
                with self._alive(folder):
                    yield folder
            return
        folder = self._leaders_folder(out)
        with self._alive(folder):
            yield folder

    def meet(self, name: str, answer: Any = None) -> list[Any]:
        """Leave `answer` for the others, wait for theirs, and give all of them, by rank."""
        if self.count == 1:
            return [answer]
        self._leave(name, answer)
        signs: dict[int, tuple[str, float]] = {}
        while True:
            failed = [rank for rank in range(self.count) if (self._room / f"failed.{rank}").exists()]
            if failed:
                raise _failure(str(documents.read(self._room / f"failed.{failed[0]}")))
            missing = [r for r in range(self.count) if not (self._room / f"{name}.{r}").exists()]
            if not missing:
                return [documents.read(self._room / f"{name}.{rank}") for rank in range(self.count)]
            self._check_alive(missing, signs)
            time.sleep(0.1)

    def finish(self) -> None:
        """The others may go; the leader waits until all do, and removes what they wrote to each other."""
        if self.count == 1:
            return
        if not self.leads:
            self._leave("finished", None)
            return
        self.meet("finished")
        self._ended.set()
        if self._thread:
            self._thread.join()
        shutil.rmtree(self._room)

    def _leaders_folder(self, out: Path) -> Path:
        """The leader's folder, once it is there; nobody else's."""
        pattern = hidden_name(glob.escape(out.name), "*", self._key)
        end = time.monotonic() + _SILENT
        while time.monotonic() < end:
            for path in out.parent.glob(pattern):
                if (path / _ROOM).is_dir() and path.stat().st_uid == os.geteuid():
                    return path
            time.sleep(0.1)
        message = f"{platform.node()} sees no folder of the first rank in {out.parent} after {_SILENT:.0f} s"
        raise ConfigError.of(
            "file", message, where=str(out), hint="give --out where all nodes see the same files"
        )

    @contextmanager
    def _alive(self, folder: Path) -> Iterator[None]:
        self._room = folder / _ROOM
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()
        try:
            yield
        except BaseException as error:
            if self._room.is_dir():
                self._leave(
                    "failed", f"rank {self.rank} on {platform.node()}: {error or type(error).__name__}"
                )
            raise
        finally:
            self._ended.set()

    def _live(self) -> None:
        for number in range(1 << 62):
            try:
                self._leave("alive", number)
            except OSError:
                return  # the folder is gone, and with it whoever would look
            if self._ended.wait(_EVERY):
                return

    def _leave(self, name: str, answer: Any) -> None:
        whole = self._room / f"{name}.{self.rank}"
        waiting = whole.with_name(f"{whole.name}.new")
        try:
            waiting.write_text(json.dumps(answer))
            waiting.rename(whole)
        except FileNotFoundError as error:
            raise _failure("the first rank has given up") from error

    def _check_alive(self, ranks: Sequence[int], signs: dict[int, tuple[str, float]]) -> None:
        now = time.monotonic()
        for rank in ranks:
            try:
                sign = (self._room / f"alive.{rank}").read_text()
            except FileNotFoundError:
                if not self._room.is_dir():
                    raise _failure("the first rank has given up") from None
                sign = ""
            before, since = signs.get(rank, ("", now))
            signs[rank] = (sign, since if sign == before else now)
            if now - signs[rank][1] > _SILENT:
                raise _failure(f"rank {rank} gave no sign of life for {_SILENT:.0f} s")


SINGLE = Crew()


def of_job(environ: Mapping[str, str]) -> Crew:
    """This process among those that the scheduler started."""
    attempt = f"{environ['HPC_JOB']}.{environ['HPC_ATTEMPT']}"
    key = hashlib.sha256(attempt.encode()).hexdigest()[:8]
    return Crew(int(environ["HPC_RANK"]), int(environ["HPC_WORLD"]), key)


def _failure(message: str) -> HpctrainError:
    return HpctrainError.of("checkpoint-share", f"{message}; nothing was kept")
