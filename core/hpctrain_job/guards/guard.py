"""The guard of a node; `hpctrain_job.guards` says how they work together.

`python -m hpctrain_job.guards.guard --node NAME`, started once on each node of the allocation, in the run
directory; who and where it is stands in the job's own variables, how many ranks there are in chain.json.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hpctrain_job import attempts, fence, resume
from hpctrain_job.chain import decision
from hpctrain_job.files import documents
from hpctrain_job.guards import ends
from hpctrain_job.guards.board import Beat, Board, Order, Phase, State
from hpctrain_job.guards.lead import Finish, Halt, Settled, Terms, View, next_step
from hpctrain_job.guards.ranks import Ranks, shares


@dataclass(frozen=True)
class Layout:
    """How ranks lie on nodes."""

    nodes: int
    per_node: int
    world: int
    cores: int
    notice: int
    suffix: str

    def of_node(self, at: int) -> range:
        """The ranks of the node at this place."""
        return range(min(at * self.per_node, self.world), min((at + 1) * self.per_node, self.world))


class Guard:
    """One node's guard; it leads while no node before it beats."""

    def __init__(self, environ: Mapping[str, str], node: str) -> None:
        self.environ = environ
        self.node = node
        self.name = environ["HPC_STEP"]
        run = Path(environ["HPC_RUN"])
        self.board = Board(Path(environ["HPC_GUARDS"]))
        self.nodes = self.board.nodes
        step = attempts.Step(run, self.name, Path(environ["HPC_CHECKPOINTS"]))
        self.layout = Layout(**documents.read(step.folder / attempts.TERMS)["guards"])
        stops = (run / "stop", *(Path(path) for path in (environ.get("HPC_STOP_FILE", ""),) if path))
        limit = float(environ.get("HPC_ENDS") or 0) or time.time() + step.terms().time
        self.job = ends.Job(step, environ["HPC_JOB"], stops, limit)
        self.terms = Terms.of(len(self.nodes))
        self.ranks = Ranks(("bash", f"steps/{self.name}/rank.sh"))
        self.order: Order | None = None
        self.attempt, self.phase = 0, Phase.IDLE
        self.is_ending, self.signalled = False, ""
        self.count, self.beaten = 0, Beat(0)
        self.seen: dict[str, tuple[int, int]] = {}
        self.halted = self.straggled = self.denied = 0

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
                self._say(f"the guard of {self.node}: {error}")
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
        self._watch_others()
        if self._leads:
            self._lead()

    # -- this node ----------------------------------------------------------------------------

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

    # -- the others ---------------------------------------------------------------------------

    @property
    def _leads(self) -> bool:
        before = self.nodes[: self.nodes.index(self.node)]
        return all(self._is_silent(node) for node in before)

    def _is_silent(self, node: str) -> bool:
        count, looks = self.seen.get(node, (-1, 0))
        return node != self.node and looks >= (self.terms.silent if count >= 0 else self.terms.unborn)

    def _watch_others(self) -> None:
        """Count the looks without a beat: the leader of all nodes, the others of those that may lead."""
        until = len(self.nodes) if self._leads else self.nodes.index(self.node)
        self.beats = {}
        for node in self.nodes[:until]:
            beat = self.board.beat(node)
            count, looks = self.seen.get(node, (-1, 0))
            if beat is not None:
                self.beats[node] = beat
            moved = beat is not None and beat.count != count
            self.seen[node] = (beat.count, 0) if moved and beat is not None else (count, looks + 1)
            if not self._leads and not self._is_silent(node):
                return  # it leads, or may

    def _lead(self) -> None:
        order = self.order
        if order is None:
            record = self.job.step.record()
            nodes = record.attempts[-1].nodes
            if not set(nodes) <= set(self.nodes):  # one was vetted out since, and has no guard to be silent
                nodes = decision.chosen(self.nodes, record) or nodes
            if attempt := self._claimed(1):
                self._write(Order(attempt, nodes))
            return
        if order.state is State.OVER:
            if self._is_silent(self.nodes[0]):
                self._close(order)
            return
        silent = frozenset(node for node in self.nodes if self._is_silent(node))
        number = self._signal(order, silent)
        if number != order.tell:
            order = self._write(replace(order, tell=number))
        view = View(order, self.nodes, self.layout.nodes, self.beats, silent, self.halted, self.straggled)
        step = next_step(view, self.terms)
        self.halted = self.halted + 1 if order.state is State.HALT else 0
        is_partly_done = any(beat.phase is Phase.DONE for beat in self.beats.values())
        self.straggled = self.straggled + 1 if is_partly_done and order.state is State.RUN else 0
        if isinstance(step, Halt):
            self._write(replace(order, state=State.HALT, code=step.code, lost=step.lost))
        elif isinstance(step, Finish):
            self._end(order, step.code, ())
        elif isinstance(step, Settled):
            self._settle(order, step)

    def _signal(self, order: Order, silent: frozenset[str]) -> str:
        """What the ranks shall hear: job.sh says it, or, where its node is dead, the clock or a stop file."""
        if order.tell == "TERM" or any(beat.is_ending for beat in self.beats.values()):
            return "TERM"
        if not self.board.signal and self.nodes[0] in silent:
            is_late = time.time() >= self.job.ends_at - self.layout.notice
            return "USR1" if is_late or self.job.stop_file else order.tell
        return self.board.signal or order.tell

    def _settle(self, order: Order, end: Settled) -> None:
        follows = ends.again(self.job, end, order.nodes, order.tell)
        if follows is None:
            self._end(order, end.code, end.lost)
        elif attempt := self._claimed(order.attempt + 1):
            ends.write(self.job, follows, end.code)
            self._write(Order(attempt, follows.nodes))
            lost = f" without {' '.join(end.lost)}" if end.lost else ""
            self._say(f"the training goes on inside its allocation{lost}, on {' '.join(follows.nodes)}")
            for line in follows.lines:
                self._act(*line.split())

    def _claimed(self, least: int) -> int:
        """The number of the next attempt; 0 where another leader has it, dead if it never orders it."""
        attempt = least + self.denied // self.terms.silent
        if self.board.claim(attempt):
            self.denied = 0
            return attempt
        self.denied += 1
        return 0

    def _write(self, order: Order) -> Order:
        self.board.write_order(order)
        return order

    def _end(self, order: Order, code: int, lost: tuple[str, ...]) -> None:
        self.board.end(code, lost)
        self._write(replace(order, state=State.OVER, code=code, lost=lost))

    def _is_over(self) -> bool:
        """Whether the ranks are gone and somebody closes the job: until then one of us may have to."""
        is_over = self.order is not None and self.order.state is State.OVER
        return is_over and self.ranks.is_gone and self.board.is_closing

    # -- instead of job.sh --------------------------------------------------------------------

    def _act(self, *words: str) -> subprocess.Popen[bytes]:
        """What job.sh would have the scheduler do; nobody waits for that."""
        return subprocess.Popen(("bash", f"steps/{self.name}/act.sh", *words), stdin=subprocess.DEVNULL)

    def _close(self, order: Order) -> None:
        """End the job whose first node is dead."""
        if self.board.close():
            self._say(f"{self.nodes[0]} is dead, and job.sh with it: {self.node} ends the job")
            self._act("close", str(order.code), order.tell).wait()

    def _say(self, line: str) -> None:
        print(f"hpctrain: {line}", file=sys.stderr, flush=True)


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
