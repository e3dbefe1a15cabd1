"""The attempts of a chain on the disk: what happened is written, what `decision.decide` answers is printed.

Run by job.sh when an attempt begins and when it ends, and read by hpctrain. The files lie in the step's
folder: `chain.json` (the terms), `attempts.jsonl` (every event), `ended` (why the chain ended, while it has).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpctrain_job import resume
from hpctrain_job.chain import decision, history, room, successors
from hpctrain_job.chain.decision import Cause
from hpctrain_job.chain.successors import Handover, Submission
from hpctrain_job.exit_codes import CONFIG, DIVERGED, HUNG, SAVED, TOO_FEW_NODES
from hpctrain_job.files import documents, shared

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

TERMS, EVENTS, ENDED = "chain.json", "attempts.jsonl", "ended"
SIGNS = ("metrics.jsonl", "logs/{step}.log", "logs/{step}.rank0.log")
"""What an attempt writes while it lives: when it was lost is when it last wrote one of these."""
NOTHING_WHOLE = "nothing-whole"
"""In the step's folder: job.sh found no checkpoint that is whole, and began no ranks."""
UNJUDGED = 3
"""The exit code of this module where it cannot say what follows."""
DEAF = 128 + signal.SIGUSR1
"""The exit code of a program that the warning killed: it does not listen for it."""
LOOKS_APART = 30.0
"""Seconds between two looks for a job whose submission nobody wrote down: it may be listed late."""
NEARLY = 0.9
"""From this share of its time on, an attempt that was told to end had come to its time limit."""
SCHEDULER_CAUSES = {
    "cancelled": Cause.CANCELLED,
    "limit": Cause.LIMIT,
    "taken": Cause.TAKEN,
    "node": Cause.NODE,
}
"""What a scheduler's words for the end of a job mean, as job.sh passes them on."""


@dataclass(frozen=True)
class Step:
    """The step of a run that is trained in several jobs."""

    run: Path
    name: str
    checkpoints: Path | None = None
    """Where the run's checkpoints are; None: nobody says so here."""

    @property
    def folder(self) -> Path:
        return self.run / "steps" / self.name

    @property
    def ended(self) -> str:
        """Why the chain ended; empty while it has not."""
        if (self.folder / "finished").exists():
            return Cause.FINISHED.value
        try:
            text = documents.text(self.folder / ENDED, documents.SHORT).strip()
        except FileNotFoundError:
            return ""
        except ValueError:
            text = ""
        return text or "for no known reason"

    def events(self) -> list[Mapping[str, Any]]:
        """All that the attempts wrote, in their order."""
        return list(shared.objects(self.folder / EVENTS))

    def write(self, event: str, **fields: Any) -> None:
        """Add one event; every attempt writes only while it is the only one."""
        line = json.dumps({"v": 1, "event": event, "at": round(time.time(), 1), **fields}, allow_nan=False)
        shared.append_line(self.folder / EVENTS, line.encode())

    def end(self, why: str) -> None:
        """Leave the mark at which every later job of the chain ends at once."""
        fresh = self.folder / f".{ENDED}.{os.getpid()}"
        fresh.write_text(f"{why}\n", encoding="utf-8")
        fresh.replace(self.folder / ENDED)

    def add(self, event: decision.Event) -> None:
        """Add what the judge was asked about."""
        if isinstance(event, decision.Began):
            inside = {"inside": True} if event.is_inside else {}
            self.write("began", job=event.job, step=event.step, nodes=list(event.nodes), **inside)
        elif isinstance(event, decision.Ended):
            fields = {
                "job": event.job,
                "cause": event.cause.value,
                "step": event.step,
                "until": round(event.at, 1),
            }
            self.write("ended", **fields, lost_nodes=list(event.lost_nodes))
            if event.lost_nodes:
                from hpctrain_job import bad_nodes  # the control plane ends no attempt by a node

                bad_nodes.remember(self.folder, event.job, self._reasons(event))

    def _reasons(self, event: decision.Ended) -> dict[str, tuple[str, str]]:
        """Why each lost node is to blame; what the vetting found, it has remembered."""
        unfit = _unfit(self, event.job)
        reason = ("died", "the scheduler or its peers lost it")
        if event.cause is Cause.HUNG:
            reason = ("hung", _verdict(self, event.job))
        return {node: reason for node in event.lost_nodes if node not in unfit}

    def reopen(self) -> None:
        """Take the mark away: a person wants the chain to go on."""
        self.write("continued")
        (self.folder / ENDED).unlink(missing_ok=True)

    def terms(self) -> decision.Terms:
        """What the run asks for, as it was planned."""
        return history.terms(self._document())

    def _document(self) -> Mapping[str, Any]:
        """chain.json; OSError or ValueError where it is none of ours."""
        document = documents.read(self.folder / TERMS)
        if not (isinstance(document, dict) and history.are_terms(document)):
            raise ValueError("it does not hold what hpctrain writes there")
        return document

    def newest(self) -> int | None:
        """The step of the newest whole checkpoint: 0 where there is none yet, None where nobody knows."""
        whole = self.whole()
        return None if whole is None else max((checkpoint.step for checkpoint in whole), default=0)

    def whole(self) -> list[resume.Checkpoint] | None:
        """The whole checkpoints, oldest first; None where nobody says how they are named."""
        layout = self._document().get("checkpoints")
        if not layout or self.checkpoints is None:
            return None
        return resume.complete(self.checkpoints / layout["folder"], layout["name"], layout["complete"])

    def record(self, waiting: Iterable[str] = (), stop_file: str = "") -> decision.Record:
        """The record that the judge is asked with."""
        record = decision.Record(self.terms())
        for event in self.events():
            step_event = history.event(event)
            record = decision.applied(step_event, record) if step_event else record
        begun = {attempt.job for attempt in record.attempts}
        still = tuple(job for job in waiting if job not in begun)
        bad = _bad_nodes()
        return replace(record, waiting=still, ended=self.ended, stop_file=stop_file, bad_nodes=bad)

    def submissions(self) -> list[Submission]:
        """Every job of the chain that was asked for, in their order."""
        return successors.submissions(shared.objects(self.run / successors.RECORD), self.name)

    def handover(self) -> Handover | None:
        """How a job of the chain hands over another one; None where none does."""
        return Handover.read(self.run, self.name, self._document())

    def submitted(self) -> tuple[str, ...]:
        """The chain's jobs in the order of their submission, without those that were refused."""
        return tuple(submission.job for submission in self.submissions() if submission.job)


def begin(step: Step, job: str, nodes: Sequence[str], stop_file: str) -> list[str]:
    """An attempt begins: what job.sh has to do now, one word and its arguments a line."""
    record = step.record(step.submitted(), stop_file)
    lines: list[str] = []
    last = record.attempts[-1] if record.attempts else None
    if last is not None and last.is_open and not record.ended:
        # whoever is alive says of the one before it that it left no word
        lines += _judged(
            step, decision.Ended(last.job, _last_sign(step, last), Cause.LOST, step.newest()), record
        )
        record = step.record(step.submitted(), stop_file)
    training = decision.chosen(tuple(nodes), record) or tuple(nodes)[: record.terms.nodes or None]
    event = decision.Began(job, time.time(), step.newest(), training)
    lines += _judged(step, event, record)
    return lines + _handed_over(step, decision.decide(event, record), record, LOOKS_APART)


def end(step: Step, job: str, cause: Cause, lost_nodes: Sequence[str], stop_file: str) -> list[str]:
    """An attempt ended: what job.sh has to do in its last moments."""
    record = step.record(step.submitted(), stop_file)
    event = decision.Ended(job, time.time(), cause, step.newest(), tuple(lost_nodes))
    actions = decision.decide(event, record)
    again = [f"requeue {action.job}" for action in actions if isinstance(action, decision.Requeue)]
    lines = again + _judged(step, event, record)
    return lines + _handed_over(step, actions, decision.applied(event, record), None)


def cause(code: int, told: str, reason: str, *, is_refused: bool, lost_nodes: bool, share: float) -> Cause:
    """Why an attempt ended, from its exit code, the signal that told it to end, the scheduler's words, and
    the share of its time that it had."""
    by_scheduler = SCHEDULER_CAUSES.get(reason)
    if code == 0:
        return Cause.FINISHED
    if code == CONFIG:
        return Cause.NETWORK if is_refused else Cause.SETTING
    if by_scheduler is not None and not (code == SAVED and by_scheduler is Cause.LIMIT):
        return by_scheduler
    if told == "TERM" and share < NEARLY:
        return Cause.CANCELLED
    if code == SAVED:
        return Cause.SAVED
    if told == "TERM" or (told == "USR1" and code == DEAF):
        return Cause.LIMIT
    if code in (DIVERGED, HUNG):
        return Cause.DIVERGED if code == DIVERGED else Cause.HUNG
    return Cause.NODE if lost_nodes else Cause.FAILED


def _judged(step: Step, event: decision.Event, record: decision.Record) -> list[str]:
    """Write the event and what it means for the chain; the rest of the answer as lines for job.sh."""
    lines = []
    actions = decision.decide(event, record)
    if decision.Train() in actions or not isinstance(event, decision.Began):
        step.add(event)
    for action in actions:
        if isinstance(action, decision.EndChain):
            step.end(action.why)
            step.write("chain-ended", why=action.why)
            lines += [f"drop {' '.join(action.jobs)}"] if action.jobs else []
        elif isinstance(action, decision.Leave):
            lines.append(f"leave {action.why}")
    return lines + avoid_lines(actions)


def avoid_lines(actions: Iterable[decision.Action]) -> list[str]:
    """What keeps waiting jobs away from nodes, as lines for job.sh."""
    return [
        f"avoid {','.join(action.nodes)} {' '.join(action.jobs)}".rstrip()
        for action in actions
        if isinstance(action, decision.Avoid) and action.nodes
    ]


def _handed_over(
    step: Step, actions: Iterable[decision.Action], record: decision.Record, apart: float | None
) -> list[str]:
    """Submit the jobs that the chain lacks, where its jobs may do so; the new ones stay away from nodes that
    failed, too."""
    handover, lines = step.handover(), []
    for action in actions:
        if isinstance(action, decision.Submit) and handover is not None:
            jobs = handover.hand_over(action.count, action.after, apart)
            if jobs and record.avoided:
                lines.append(f"avoid {','.join(record.avoided)} {' '.join(jobs)}")
    return lines


def _last_sign(step: Step, attempt: decision.Attempt) -> float:
    """When an attempt without a word last wrote anything."""
    paths = (step.run / name.format(step=step.name) for name in SIGNS)
    times = [path.stat().st_mtime for path in paths if path.exists()]
    return max(attempt.began, *(at for at in times if at < time.time() - 1), 0.0)


def main(argv: Sequence[str] | None = None) -> int:
    """Tell job.sh what to do."""
    options = _parser().parse_args(argv)
    step = Step(options.run, options.step, options.checkpoints)
    try:
        lines = _answer(step, options)
    except (OSError, ValueError) as error:  # job.sh goes on without an answer
        print(f"hpctrain: {step.folder / TERMS} cannot be read: {error}", file=sys.stderr)
        return UNJUDGED
    print("\n".join(lines))
    return 0


def _answer(step: Step, options: Namespace) -> list[str]:
    """What job.sh has to do, one word and its arguments a line."""
    nodes = options.nodes.split()
    stop_file = next((str(path) for path in options.stop if path.exists()), "")
    if options.event == "begin":
        is_full = room.is_lacking_still(step.whole, step.record())
        lines = begin(step, options.job, nodes, stop_file)
        if is_full and step.record().attempts[-1].is_open:  # its ranks would end where the last one's did
            lines += [*end(step, options.job, Cause.FULL, (), stop_file), f"leave {Cause.FULL.value}"]
        return lines
    attempts = step.record().attempts
    training = attempts[-1].nodes if attempts else ()
    words = (options.signal, options.reason)
    why, lost = explained(step, options.job, options.code, words, nodes, training)
    return end(step, options.job, why, lost, stop_file)


def explained(
    step: Step, job: str, code: int, words: tuple[str, str], lost: Sequence[str], nodes: Sequence[str]
) -> tuple[Cause, tuple[str, ...]]:
    """Why the attempt on these nodes ends, as `cause` says with what lies in the step's folder, and all nodes
    that are to blame; `words` are the signal that it heard and the scheduler's reason."""
    lack = room.lack(step.whole)
    if code == HUNG:
        lost = (*lost, *_blamed(step, job, nodes))
    unfit = _unfit(step, job)
    if code == TOO_FEW_NODES:
        lost = (*lost, *unfit)
    fabric = step.folder / "fabric"
    why = cause(
        code,
        *words,
        is_refused=fabric.is_file() and documents.whole(fabric).startswith(b"refused:"),
        lost_nodes=bool(lost),
        share=_share(step.record()),
    )
    why = Cause.FULL if why is Cause.FAILED and lack else why
    why = Cause.DAMAGED if why is Cause.SETTING and (step.folder / NOTHING_WHOLE).exists() else why
    return why, tuple(dict.fromkeys((*lost, *unfit)))


def _share(record: decision.Record) -> float:
    """How much of its time the running job has had."""
    attempts = record.attempts
    first = next((attempt for attempt in reversed(attempts) if not attempt.is_inside), None)
    return (time.time() - first.began) / max(1, record.terms.time) if first else 0.0


def _blamed(step: Step, job: str, nodes: Sequence[str]) -> list[str]:
    from hpctrain_job.hangs import verdicts  # the control plane reads this module and judges nobody

    return list(verdicts.blamed(step.folder, job, nodes))


def _bad_nodes() -> tuple[str, ...]:
    """Nodes that failed under other runs; only a job is told where they are remembered."""
    if "HPC_BAD_NODES" not in os.environ:
        return ()
    from hpctrain_job import bad_nodes

    return bad_nodes.known_to_job()


def _verdict(step: Step, job: str) -> str:
    from hpctrain_job.hangs import verdicts  # as above

    verdict = verdicts.newest(step.folder, job)
    return verdict.words if verdict else ""


def _unfit(step: Step, job: str) -> tuple[str, ...]:
    from hpctrain_job.vet import judge  # as above

    return judge.unfit(step.folder, job)


def _parser() -> ArgumentParser:
    import argparse  # the control plane reads this module and parses nothing

    parser = argparse.ArgumentParser(
        prog="hpctrain_job.attempts", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("event", choices=("begin", "end"))
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--step", required=True)
    parser.add_argument("--checkpoints", type=Path)
    parser.add_argument("--job", required=True)
    parser.add_argument("--stop", type=Path, action="append", default=[], help="a file that asks for the end")
    parser.add_argument("--code", type=int, default=0, help="how the ranks ended")
    parser.add_argument("--signal", default="", help="what told them to end")
    parser.add_argument("--reason", default="", help=f"the scheduler's reason: {', '.join(SCHEDULER_CAUSES)}")
    parser.add_argument("--nodes", default="", help="the attempt's nodes; at its end those that failed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
