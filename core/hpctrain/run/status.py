"""The state of runs and their steps, from three sources in order: the job's own exit record, one
question to the scheduler for all that is left, else `unknown`. What is missing is never done."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

from hpctrain.model.frozen import frozen
from hpctrain.model.job import JobState, State
from hpctrain.render.graph import Node
from hpctrain.run.poll import Answer, Poll
from hpctrain.run.record import Entry, Record
from hpctrain.run.submit import Submission, submission

SAVED = 75
"""The exit code of a job that saved and stopped when its time was nearly over."""


@frozen(kw_only=True)
class StepState:
    """One step as people see it; `said` names the source: exit, scheduler, record or nobody."""

    step: str
    state: State
    job: str = ""
    reason: str = ""
    exit_code: int | None = None
    attempt: int = 0
    said: str = "record"
    scheduler: JobState | None = None
    ending: bool = False
    """Cancelled, and not over yet."""
    origin: str = ""
    """Where an asset came from: cache, or hub, url, git."""


@frozen(kw_only=True)
class RunState:
    """A run with its steps; `answer` is what the scheduler said, with its age."""

    directory: Path
    state: State
    steps: tuple[StepState, ...]
    answer: Answer


@frozen(kw_only=True)
class Ended:
    """The exit record that a job writes itself."""

    job: str
    code: int
    attempt: int = 0
    signal: str = ""


@frozen(kw_only=True)
class Run:
    """What status needs of a run: where it lies and which steps it has."""

    directory: Path
    nodes: tuple[Node, ...]

    @property
    def entries(self) -> list[Entry]:
        return Record(self.directory / "record.jsonl").read()


def states(runs: Sequence[Run], poll: Poll) -> list[RunState]:
    """The state of every run, with one question to the scheduler for all of them."""
    known = [(run, entries, _first(run, entries)) for run in runs for entries in [run.entries]]
    open_ = [
        job
        for run, entries, steps in known
        for step in steps
        if step.said == "nobody" and (job := submission(entries, step.step))
    ]
    answer = poll.ask([j.job for j in open_ if j.job], [j.tag for j in open_])
    return [_run(run, entries, steps, answer) for run, entries, steps in known]


def run_state(steps: Iterable[StepState]) -> State:
    """One word for the run: the most urgent of its steps' states."""
    found = [step.state for step in steps]
    for state in (
        State.FAILED, State.CANCELLED, State.RUNNING, State.BUILDING,
        State.QUEUED, State.UNKNOWN, State.WAITING,
    ):  # fmt: skip
        if state in found:
            return state
    return State.DONE if found and all(s is State.DONE for s in found) else State.PLANNED


def exit_record(directory: Path, step: str) -> Ended | None:
    """What the last attempt of a step's job wrote when it ended; None when there is no such word."""
    try:
        found = json.loads((directory / "steps" / step / "exit").read_bytes())
        return Ended(
            job=str(found["job"]),
            code=int(found["code"]),
            attempt=int(found.get("attempt", 0)),
            signal=str(found.get("signal", "")),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _first(run: Run, entries: list[Entry]) -> list[StepState]:
    """What is known without the scheduler; `nobody` marks a step that it must be asked about."""
    return [_without_scheduler(run.directory, node, entries) for node in run.nodes]


def _without_scheduler(directory: Path, node: Node, entries: list[Entry]) -> StepState:
    last = submission(entries, node.name)
    if last is None:
        return _here(node, entries)
    if last.refused:
        return StepState(step=node.name, state=State.FAILED, reason="the scheduler refused it")
    ended = exit_record(directory, node.name)
    if ended is not None and ended.job == last.job and ended.code == 0:
        return _by_exit(node.name, ended, last)
    # an attempt that ended badly may be queued again under the same id: only the scheduler knows
    return StepState(step=node.name, state=State.UNKNOWN, job=last.job, said="nobody")


_HERE = ("step-started", "step-ended", "step-exists")


def _here(node: Node, entries: list[Entry]) -> StepState:
    """A step that no scheduler has, from the record alone."""
    name = node.name
    own = [e for e in entries if e.get("step") == name and e.get("event") in _HERE]
    if not own:
        return StepState(step=name, state=State.WAITING if node.waits else State.PLANNED)
    last = own[-1]
    if last["event"] == "step-exists":
        return StepState(step=name, state=State.DONE, reason="it existed")
    if last["event"] == "step-started":
        if _alive(last):
            return StepState(step=name, state=State.BUILDING if node.makes else State.RUNNING)
        return StepState(step=name, state=State.FAILED, reason="it was interrupted")
    code = last.get("code")
    if code is None:
        return StepState(step=name, state=State.FAILED, reason="it was interrupted")
    return StepState(step=name, state=State.FAILED if code else State.DONE, exit_code=code)


def _alive(started: Entry) -> bool:
    """Whether the process still runs; of another machine we cannot know it and believe the record."""
    if started.get("host") != os.uname().nodename:
        return True
    with contextlib.suppress(PermissionError):
        try:
            os.kill(int(started.get("pid", 0)), 0)
        except (ProcessLookupError, ValueError):
            return False
    return True


def _run(run: Run, entries: list[Entry], steps: list[StepState], answer: Answer) -> RunState:
    final = tuple(
        _with_scheduler(run.directory, step, submission(entries, step.step), answer)
        if step.said == "nobody"
        else step
        for step in steps
    )
    origins = {e.get("step"): str(e.get("origin", "")) for e in entries if e.get("event") == "asset"}
    final = tuple(attrs.evolve(step, origin=origins.get(step.step, "")) for step in final)
    return RunState(directory=run.directory, state=run_state(final), steps=final, answer=answer)


def _with_scheduler(directory: Path, step: StepState, last: Submission | None, answer: Answer) -> StepState:
    assert last is not None
    jobs = [job for job in answer.jobs if _same(job, last)]
    live = next((job for job in jobs if not job.state.over), None)
    if live is not None:
        shown = _by_scheduler(step.step, live)
        return attrs.evolve(shown, ending=True, reason="cancelled, it is ending") if last.cancelled else shown
    ended = exit_record(directory, step.step)
    if ended is None or ended.job not in (last.job, *(job.id for job in jobs)):
        if jobs:
            return _by_scheduler(step.step, jobs[0])
        silent = "the scheduler does not answer" if answer.silent else "the scheduler does not know its job"
        return attrs.evolve(step, reason=silent)
    shown = _by_exit(step.step, ended, last)
    if not jobs:
        return _while_silent(shown) if answer.silent else shown
    state = State.CANCELLED if jobs[0].state is State.CANCELLED else shown.state
    reason = ", ".join(filter(None, (jobs[0].reason, shown.reason)))
    return attrs.evolve(shown, state=state, reason=reason, scheduler=jobs[0])


def _while_silent(shown: StepState) -> StepState:
    """An attempt that failed may be queued again by now, and who called it failed would start another."""
    if shown.state is not State.FAILED:
        return shown
    reason = f"{shown.reason}; the scheduler does not answer, it may run again"
    return attrs.evolve(shown, state=State.UNKNOWN, reason=reason)


def _same(job: JobState, last: Submission) -> bool:
    """A tag decides; an id alone may be another's after the controller lost its memory."""
    return job.tag == last.tag if job.tag else bool(last.job) and job.id == last.job


def _by_scheduler(step: str, found: JobState) -> StepState:
    return StepState(
        step=step, state=found.state, job=found.id, reason=found.reason, exit_code=found.exit_code,
        said="scheduler", scheduler=found,
    )  # fmt: skip


def _by_exit(step: str, ended: Ended, last: Submission) -> StepState:
    state, reason = State.DONE, ""
    if ended.code == SAVED:
        state, reason = State.WAITING, "it saved and stopped before its time limit"
    elif ended.code:
        state = State.CANCELLED if last.cancelled else State.FAILED
        reason = f"exit code {ended.code}" + (f" after {ended.signal}" if ended.signal else "")
    return StepState(
        step=step, state=state, job=ended.job, reason=reason, exit_code=ended.code,
        attempt=ended.attempt, said="exit",
    )  # fmt: skip
