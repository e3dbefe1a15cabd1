"""The watch of a node: started beside its first rank, it ends with the ranks. That of the first node judges.

`python -m hpctrain_job.hangs.watch --parent PID --on-hang say|stop`; who and where it is stands in the job's
own variables. A verdict counts when it is reached twice, a second apart. It goes to the step's folder and its
log; with `stop` the ranks are ended, whose starter then ends, and job.sh says so by its exit code.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hpctrain_job.hangs import judgement, pages, processes, verdicts
from hpctrain_job.hangs.evidence import Kind, Look, Verdict
from hpctrain_job.hangs.node import WATCH, Node, is_left
from hpctrain_job.hangs.pulse import FOLDER, private
from hpctrain_job.hangs.thresholds import Thresholds

TICK = 0.5
PAGE = 60.0
"""Seconds between two pages of a node on which all is well."""
SIGNS = ("metrics.jsonl", "logs/{step}.log", "logs/{step}.rank0.log")
"""What a trainer writes that cannot be seen otherwise."""
NOT_ENDED = (Kind.START, Kind.LOG)
"""For these no step is ended: a start may take its time, and a log may be silent in good health."""
GRACE = 10.0
"""Between TERM and KILL for a program that started the ranks."""


class Watch:
    """One node's watch; `judges` on the first node."""

    def __init__(self, environ: Mapping[str, str], parent: int, *, stops: bool, terms: Thresholds) -> None:
        self.run = Path(environ["HPC_RUN"])
        self.step = self.run / "steps" / environ["HPC_STEP"]
        self.name = environ["HPC_STEP"]
        self.job = environ["HPC_JOB"]
        self.node_rank = int(environ["HPC_NODE_RANK"])
        self.judges = self.node_rank == 0
        self.stops = stops
        self.parent, self.parent_born = parent, processes.born(parent)
        folder = private(environ[FOLDER]) or self.step / "pulse"
        self.node = Node(folder, os.uname().nodename, self.node_rank, terms, time.monotonic())
        self.last = judgement.WELL
        self.standing = judgement.WELL
        self.page_at = -PAGE
        self.judged_at = 0.0
        self.sizes: tuple[int, ...] = ()
        self.grew_at = time.monotonic()

    def run_to_end(self) -> None:
        """Look until the ranks are gone."""
        with contextlib.suppress(OSError):
            (self.node.folder / WATCH).write_text(
                f"{os.getpid()} {processes.born(os.getpid())}", encoding="utf-8"
            )
        sweep(self.node.folder)
        while self._is_needed():
            try:
                self.tick(time.monotonic())
            except OSError as error:  # a full disk, a file server that does not answer: the next look may do
                print(f"hpctrain: {error}", file=sys.stderr)
                time.sleep(PAGE)
            time.sleep(TICK)
        shutil.rmtree(self.node.folder, ignore_errors=True)

    def tick(self, now: float) -> None:
        """Look, tell the others, judge, and end what was judged to end."""
        self.node.look(now)
        still, suspect = now - self.node.moved_at, self.node.terms.suspect
        every = suspect / 6 if still >= suspect / 3 else PAGE
        if self.node.documents and (now - self.page_at >= every or (still < TICK and self.standing.hangs)):
            self.page_at = now
            self._write_page(now)
        if self.judges and now - self.judged_at >= 1.0:
            self.judged_at = now
            self._judge(now)
        if still >= suspect and self.stops and (self.step / verdicts.ENDED).exists():
            self._end()

    def _judge(self, now: float) -> None:
        limits = self.node.limits
        if not self.node.documents:
            look = Look(self._log_still(now))
        elif now - self.node.moved_at >= min(limits.gone, limits.suspect):
            look = pages.read(self.step / "nodes", self._write_page(now), limits.silent)
        else:
            look = Look(0.0)
        verdict = judgement.judge(look, limits)
        if verdict.names == self.last.names and verdict.names != self.standing.names:
            self._tell(verdict)
        self.last = verdict

    def _tell(self, verdict: Verdict) -> None:
        """Write a verdict that was reached twice, or that the one before it holds no longer."""
        if verdict.hangs:
            ends = self.stops and verdict.kind not in NOT_ENDED
            verdicts.write(self.step, self.job, verdict, ends=ends)
            self._say(f"{verdicts.sentence(verdict)} ({'; '.join(verdict.evidence)})")
            if ends:
                (self.step / verdicts.ENDED).write_text(f"{verdicts.sentence(verdict)}\n", encoding="utf-8")
        elif self.standing.hangs:
            verdicts.write(self.step, self.job, self.standing, holds=False)
            self._say("what hung moves again")
        self.standing = verdict

    def _say(self, line: str) -> None:
        """A line at the end of the step's log."""
        with (self.run / "logs" / f"{self.name}.log").open("a", encoding="utf-8") as log:
            log.write(f"hpctrain: {line}\n")
        self.sizes = self._sign_sizes()

    def _write_page(self, now: float) -> Path:
        members = {
            group: packed for d in self.node.documents.values() for group, packed in d["members"].items()
        }
        still = now - self.node.moved_at
        return pages.write(self.step / "nodes", self.node_rank, still, self.node.ranks(), members)

    def _log_still(self, now: float) -> float:
        sizes = self._sign_sizes()
        if sizes != self.sizes:
            self.sizes, self.grew_at = sizes, now
        return now - self.grew_at

    def _sign_sizes(self) -> tuple[int, ...]:
        paths = [self.run / sign.format(step=self.name) for sign in SIGNS]
        return tuple(path.stat().st_size if path.exists() else 0 for path in paths)

    def _end(self) -> None:
        """A rank that hangs hears nothing but KILL; what started it may want to clean up."""
        for pid in self.node.pids:
            _kill(pid, signal.SIGKILL)
        until = time.monotonic() + GRACE
        _kill(self.parent, signal.SIGTERM)
        while self._parent_lives() and time.monotonic() < until:
            time.sleep(TICK)
        if self._parent_lives():
            _kill(self.parent, signal.SIGKILL)

    def _is_needed(self) -> bool:
        return self._parent_lives() or bool(self.node.pids)

    def _parent_lives(self) -> bool:
        return processes.born(self.parent) == self.parent_born != "" and (
            processes.sample(self.parent, 0.0) is not None
        )


def sweep(folder: Path) -> None:
    """Remove what earlier jobs left beside it: most schedulers end a watch before it could."""
    for left in folder.parent.glob(f"hpctrain-{os.getuid()}-*"):
        if left != folder and private(str(left)) is not None and is_left(left):
            shutil.rmtree(left, ignore_errors=True)


def _kill(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def main(argv: Sequence[str] | None = None) -> int:
    """Watch this node."""
    parser = argparse.ArgumentParser(
        prog="hpctrain_job.hangs.watch", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--parent", type=int, required=True, help="the process of the node's first rank")
    parser.add_argument("--on-hang", choices=("say", "stop"), default="say")
    parser.add_argument("--term", action="append", nargs=2, default=[], metavar=("NAME", "SECONDS"))
    options = parser.parse_args(argv)
    changed: dict[str, Any] = {name: float(value) for name, value in options.term}
    terms = replace(Thresholds(), **changed)
    os.umask(0o077)
    Watch(os.environ, options.parent, stops=options.on_hang == "stop", terms=terms).run_to_end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
