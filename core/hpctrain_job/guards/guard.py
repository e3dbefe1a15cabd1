"""The guard of a node; `hpctrain_job.guards` says how they work together.

`python -m hpctrain_job.guards.guard --node NAME`, started once on each node of the allocation, in the run
directory; who and where it is stands in the job's own variables, how many ranks there are in chain.json.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hpctrain_job import attempts, fence, resume
from hpctrain_job.files import documents
from hpctrain_job.guards import ends
from hpctrain_job.guards.board import Beat, Board, Order, Phase, State
from hpctrain_job.guards.leader import Leader, say
from hpctrain_job.guards.ranks import RankLayout, Ranks, shares


class Guard:
    """One node's guard: it looks after the ranks of its node as ordered, and beats."""

    def __init__(self, environ: Mapping[str, str], node: str) -> None:
        self.environ = environ
        self.node = node
        self.name = environ["HPC_STEP"]
        run = Path(environ["HPC_RUN"])
        self.board = Board(Path(environ["HPC_GUARDS"]))
        self.nodes = self.board.nodes
        step = attempts.Step(run, self.name, Path(environ["HPC_CHECKPOINTS"]))
        self.layout = RankLayout(**documents.read(step.folder / attempts.TERMS)["guards"])
        stops = (run / "stop", *(Path(path) for path in (environ.get("HPC_STOP_FILE", ""),) if path))
        limit = float(environ.get("HPC_ENDS") or 0) or time.time() + step.terms().time
        job = ends.Job(step, environ["HPC_JOB"], stops, limit)
        self.leader = Leader(node, self.board, job, self.layout)
        self.terms = self.leader.terms
        self.ranks = Ranks(("bash", f"steps/{self.name}/rank.sh"))
        self.order: Order | None = None
        self.attempt, self.phase = 0, Phase.IDLE
        self.is_ending, self.signalled = False, ""
        self.count, self.beaten = 0, Beat(0)

    def run(self) -> int:
        """Until all is over; at once on a node that was vetted out."""
        if self.node not in self.nodes:
            return 0
        signal.signal(signal.SIGTERM, self._hear)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # job.sh says it to the leader, the leader to all
        while not self._is_over():
            try:
                self.tick()
            except OSError as error:  # a full disk, a file server that does not answer: the next look may do
                say(f"the guard of {self.node}: {error}")
            time.sleep(self.terms.look)
        return 0

    def _hear(self, *_: object) -> None:
        self.is_ending = True

    def tick(self) -> None:
        """Look after the ranks, follow the order, give a sign of life, and lead where no other does."""
        self.ranks.look()
        self._judge_ranks()
        order = self.board.order()
        if order is not None and (self.order is None or order.attempt >= self.order.attempt):
            self.order = order
            self._follow(order)
        self._beat()
        self.leader.watch()
        if self.leader.leads:
            self.leader.lead(self.order)

    def _judge_ranks(self) -> None:
        if self.phase is not Phase.RUNNING:
            return
        if self.ranks.failure:
            self.phase = Phase.FAILED
            self.ranks.kill()
        elif not self.ranks.is_running:
            self.phase = Phase.DONE

    def _follow(self, order: Order) -> None:
        if order.state is not State.RUN or order.attempt != self.attempt:
            if not self.ranks.is_gone:
                self.ranks.kill()
                self.ranks.look()
            self.phase = Phase.STOPPED if self.phase is Phase.RUNNING else self.phase
        if order.state is State.RUN and order.attempt != self.attempt and self.ranks.is_gone:
            self.attempt, self.signalled = order.attempt, ""
            self.phase = Phase.IDLE
            self._begin(order)
        if order.tell and order.tell != self.signalled and self.phase is Phase.RUNNING:
            self.signalled = order.tell
            if not (order.tell == "TERM" and self.is_ending):  # then its ranks heard it, too
                self.ranks.tell(signal.Signals[f"SIG{order.tell}"])

    def _begin(self, order: Order) -> None:
        if self.node not in order.nodes or self.is_ending:
            return
        at = order.nodes.index(self.node)
        ranks = self.layout.of_node(at)
        if ranks:
            environs = [self._environ(order, at, rank, local) for local, rank in enumerate(ranks)]
            self.ranks.start(environs, shares(len(ranks), self.layout.cores))
            self.phase = Phase.RUNNING

    def _environ(self, order: Order, at: int, rank: int, local: int) -> dict[str, str]:
        head = f"{order.nodes[0]}{self.layout.suffix}" if self.layout.nodes > 1 else "127.0.0.1"
        name = f"{self.environ['HPC_JOB']}.{self.environ['HPC_ATTEMPT']}.{self.name}.{order.attempt}"
        environ = dict(self.environ)
        if order.attempt > 1:  # the job has read the newest checkpoint of its beginning, not this one's
            environ.pop(resume.CHECKED, None)
        return {
            **environ,
            "HPC_RANK": str(rank),
            "HPC_LOCAL_RANK": str(local),
            "HPC_NODE_RANK": str(at),
            "HPC_WORLD": str(self.layout.world),
            "HPC_NODES": str(self.layout.nodes),
            "HPC_HEAD": head,
            "HPC_PORT": str(12000 + zlib.crc32(name.encode()) % 19000),  # below the ephemeral range
            "HPC_ATTEMPT": str(int(self.environ["HPC_ATTEMPT"]) + order.attempt - 1),
            fence.VARIABLE: f"{self.board.folder}/order:{order.attempt}",
        }

    def _beat(self) -> None:
        beat = Beat(self.count, self.attempt, self.phase, self.ranks.code, self.ranks.is_gone, self.is_ending)
        is_new = replace(beat, count=0) != replace(self.beaten, count=0)
        self.count += 1
        if is_new or self.count - self.beaten.count >= self.terms.beat:
            self.board.write_beat(self.node, beat)
            self.beaten = beat

    def _is_over(self) -> bool:
        """Whether the ranks are gone and somebody closes the job: until then one of us may have to."""
        is_over = self.order is not None and self.order.state is State.OVER
        return is_over and self.ranks.is_gone and self.board.is_closing


def main(argv: Sequence[str] | None = None) -> int:
    """Guard this node."""
    parser = argparse.ArgumentParser(
        prog="hpctrain_job.guards.guard", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--node", required=True, help="its name, as the scheduler says it")
    options = parser.parse_args(argv)
    os.umask(0o077)
    return Guard(os.environ, options.node).run()


if __name__ == "__main__":
    sys.exit(main())
