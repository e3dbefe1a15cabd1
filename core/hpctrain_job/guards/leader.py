"""What a guard does for all nodes, while no node before its own beats: it leads."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

from hpctrain_job.chain import decision
from hpctrain_job.guards import ends
from hpctrain_job.guards.board import Beat, Board, Order, Phase, State
from hpctrain_job.guards.judgement import AttemptOver, Finish, Halt, Terms, View, next_step
from hpctrain_job.guards.ranks import RankLayout


class Leader:
    """Watches the other nodes, and orders what all of them do: `judgement` says what, this one does it."""

    def __init__(self, node: str, board: Board, job: ends.Job, layout: RankLayout) -> None:
        self.node, self.board, self.job, self.layout = node, board, job, layout
        self.nodes = board.nodes
        self.terms = Terms.of(len(self.nodes))
        self.seen: dict[str, tuple[int, int]] = {}
        self.beats: dict[str, Beat] = {}
        self.halted = self.straggled = self.denied = 0

    @property
    def leads(self) -> bool:
        """Whether no node before this one beats."""
        before = self.nodes[: self.nodes.index(self.node)]
        return all(self._is_silent(node) for node in before)

    def _is_silent(self, node: str) -> bool:
        count, looks = self.seen.get(node, (-1, 0))
        return node != self.node and looks >= (self.terms.silent if count >= 0 else self.terms.unborn)

    def watch(self) -> None:
        """Count the looks without a beat: the leader of all nodes, the others of those that may lead."""
        until = len(self.nodes) if self.leads else self.nodes.index(self.node)
        self.beats = {}
        for node in self.nodes[:until]:
            beat = self.board.beat(node)
            count, looks = self.seen.get(node, (-1, 0))
            if beat is not None:
                self.beats[node] = beat
            moved = beat is not None and beat.count != count
            self.seen[node] = (beat.count, 0) if moved and beat is not None else (count, looks + 1)
            if not self.leads and not self._is_silent(node):
                return  # it leads, or may

    def lead(self, order: Order | None) -> None:
        """One look of the leader."""
        if order is None:
            self._begin()
        elif order.state is not State.OVER:
            self._judge(order)
        elif self._is_silent(self.nodes[0]):
            self._close(order)

    def _begin(self) -> None:
        record = self.job.step.record()
        nodes = record.attempts[-1].nodes
        if not set(nodes) <= set(self.nodes):  # one was vetted out since, and has no guard to be silent
            nodes = decision.chosen(self.nodes, record) or nodes
        if attempt := self._claimed(1):
            self._write(Order(attempt, nodes))

    def _judge(self, order: Order) -> None:
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
        elif isinstance(step, AttemptOver):
            self._settle(order, step)

    def _signal(self, order: Order, silent: frozenset[str]) -> str:
        """What the ranks shall hear: job.sh says it, or, where its node is dead, the clock or a stop file."""
        if order.tell == "TERM" or any(beat.is_ending for beat in self.beats.values()):
            return "TERM"
        if not self.board.signal and self.nodes[0] in silent:
            is_late = time.time() >= self.job.ends_at - self.layout.notice
            return "USR1" if is_late or self.job.stop_file else order.tell
        return self.board.signal or order.tell

    def _settle(self, order: Order, end: AttemptOver) -> None:
        follows = ends.again(self.job, end, order.nodes, order.tell)
        if follows is None:
            self._end(order, end.code, end.lost)
        elif attempt := self._claimed(order.attempt + 1):
            ends.write(self.job, follows, end.code)
            self._write(Order(attempt, follows.nodes))
            lost = f" without {' '.join(end.lost)}" if end.lost else ""
            say(f"the training goes on inside its allocation{lost}, on {' '.join(follows.nodes)}")
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

    def _act(self, *words: str) -> subprocess.Popen[bytes]:
        """What job.sh would have the scheduler do; nobody waits for that."""
        return subprocess.Popen(
            ("bash", f"steps/{self.job.step.name}/act.sh", *words), stdin=subprocess.DEVNULL
        )

    def _close(self, order: Order) -> None:
        """End the job whose first node is dead."""
        if self.board.close():
            say(f"{self.nodes[0]} is dead, and job.sh with it: {self.node} ends the job")
            self._act("close", str(order.code), order.tell).wait()


def say(line: str) -> None:
    """Into the log of the step."""
    print(f"hpctrain: {line}", file=sys.stderr, flush=True)
