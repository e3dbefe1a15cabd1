"""The state of runs and their steps, from three sources in order: the job's own exit record, one
question to the scheduler for all that is left, else `unknown`. What is missing is never done."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs
from attrs import frozen

from hpctrain.model.job import ChainState, JobState, State
from hpctrain.render.graph import Node
from hpctrain.run.disk.record import Entry, Record
from hpctrain.run.steps.poll import Answer, Poll
from hpctrain.run.steps.submit import Submission, submission, submissions
from hpctrain_job.exit_codes import SAVED
from hpctrain_job.files import documents

BAD = (State.FAILED, State.CANCELLED)
"""How a step or a run ended badly."""
IN_PROGRESS = (State.BUILDING, State.QUEUED, State.RUNNING)
"""States of a step that somebody or something works on now."""


@frozen(kw_only=True)
class StepState:
    """One step as people see it."""

    step: str
    """The step's name."""
    state: State
    """In one word."""
    job: str = ""
    """The id of its last job; empty for a step that runs without one."""
    reason: str = ""
    """Why it waits, or how it ended."""
    exit_code: int | None = None
    """How its program ended, once it has."""
    attempt: int = 0
    """How often the scheduler had started the job before."""
    source: str = "record"
    """Who says so: exit (the job itself), scheduler, record or nobody."""
    scheduler: JobState | None = None
    """What the scheduler knows of the job, where it was asked."""
    ending: bool = False
    """Cancelled, and not over yet."""
    origin: str = ""
    """Where an asset came from: cache, or hub, url, git."""
    chain: ChainState | None = None
    """Where several jobs do it, one after the other: how far they have come."""


@frozen(kw_only=True)
class RunState:
    """A run with its steps."""

    directory: Path
    """The run's directory."""
    state: State
    """The most urgent of its steps' states; DONE when all of them are."""
    steps: tuple[StepState, ...]
    """Each step, in the order of the plan."""
    answer: Answer
    """What the scheduler said, `age_s` seconds ago; `silent` are the reasons why it said nothing new."""

    @property
    def is_in_progress(self) -> bool:
        """Whether somebody or something works on one of its steps now."""
        return any(step.state in IN_PROGRESS for step in self.steps)


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
    rows = [(run, entries, _first(run, entries)) for run in runs for entries in [run.entries]]
    open_ = [
        job
        for run, entries, steps in rows
        for node, step in zip(run.nodes, steps, strict=True)
        if step.source == "nobody"
        for job in _questions(run, node, entries)
    ]
    answer = poll.ask([j.job for j in open_ if j.job], [j.tag for j in open_])
    return [_run(run, entries, steps, answer) for run, entries, steps in rows]


def _questions(run: Run, node: Node, entries: list[Entry]) -> tuple[Submission, ...]:
    """The submissions of a step that the scheduler must be asked about."""
    submitted = submissions(entries, node.name)
    if not node.links:
        return submitted[-1:]
    from hpctrain.run.steps import chained  # most runs have no chain

    return chained.unsettled(run.directory, node.name, submitted)


def run_state(steps: Iterable[StepState]) -> State:
    """One word for the run: the most urgent of its steps' states."""
    step_states = [step.state for step in steps]
    for state in (
        State.FAILED, State.CANCELLED, State.RUNNING, State.BUILDING,
        State.QUEUED, State.UNKNOWN, State.WAITING,
    ):  # fmt: skip
        if state in step_states:
            return state
    return State.DONE if step_states and all(s is State.DONE for s in step_states) else State.PLANNED


def exit_record(directory: Path, step: str) -> Ended | None:
    """What the last attempt of a step's job wrote when it ended; None when there is no such word."""
    try:
        fields = documents.read(directory / "steps" / step / "exit")
        return Ended(
            job=str(fields["job"]),
            code=int(fields["code"]),
            attempt=int(fields.get("attempt", 0)),
            signal=str(fields.get("signal", "")),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None


def _first(run: Run, entries: list[Entry]) -> list[StepState]:
    """What is known without the scheduler; `nobody` marks a step that it must be asked about."""
    return [_without_scheduler(run.directory, node, entries) for node in run.nodes]


def _without_scheduler(directory: Path, node: Node, entries: list[Entry]) -> StepState:
    last = submission(entries, node.name)
    if last is None:
        return _local_state(directory, node, entries)
    if node.links:
        return _chain_without_scheduler(directory, node, entries)
    if last.refused:
        return StepState(step=node.name, state=State.FAILED, reason="the scheduler refused it")
    ended = exit_record(directory, node.name)
    if ended is not None and ended.job == last.job and ended.code == 0:
        return _by_exit(node.name, ended, last)
    # an attempt that ended badly may be queued again under the same id: only the scheduler knows
    return StepState(step=node.name, state=State.UNKNOWN, job=last.job, source="nobody")


def _chain_without_scheduler(directory: Path, node: Node, entries: list[Entry]) -> StepState:
    submitted = submissions(entries, node.name)
    ended = exit_record(directory, node.name)
    done = next((s for s in submitted if ended and ended.code == 0 and s.job == ended.job), None)
    if done is not None and ended is not None:
        return attrs.evolve(_by_exit(node.name, ended, done), chain=_chain(directory, node, len(submitted)))
    if all(s.refused for s in submitted):
        chain = _chain(directory, node, len(submitted))
        return StepState(step=node.name, state=State.FAILED, reason="the scheduler refused it", chain=chain)
    return StepState(step=node.name, state=State.UNKNOWN, job=submitted[-1].job, source="nobody")


def _chain(directory: Path, node: Node, submitted: int, jobs: tuple[str, ...] = ()) -> ChainState:
    from hpctrain.run.steps import chained  # most runs have no chain

    assert node.links is not None
    return chained.chain_state(directory, node.name, node.links.attempts, submitted, jobs)


_LOCAL_EVENTS = ("step-started", "step-ended", "step-exists")


def _local_state(directory: Path, node: Node, entries: list[Entry]) -> StepState:
    """A step that no scheduler has, from the record alone."""
    name = node.name
    step_entries = [e for e in entries if e.get("step") == name and e.get("event") in _LOCAL_EVENTS]
    if not step_entries:
        of_scripts = _by_scripts(directory, name)
        return of_scripts or StepState(step=name, state=State.WAITING if node.waits else State.PLANNED)
    last = step_entries[-1]
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


def _by_scripts(directory: Path, step: str) -> StepState | None:
    """What a step wrote that nobody recorded: run.sh of an ejected run started it; None where it has not."""
    folder = directory / "steps" / step
    if (ended := exit_record(directory, step)) is not None:
        return _by_exit(step, ended, Submission(tag="", job=ended.job))
    if (folder / "finished").exists():
        return StepState(step=step, state=State.DONE, source="exit")
    if (folder / "jobs.jsonl").exists():
        reason = "run.sh began it: only its scheduler knows more"
        return StepState(step=step, state=State.UNKNOWN, reason=reason)
    return None


def _alive(started: Entry) -> bool:
    """Whether the process still runs; of another machine we cannot know it and believe the record."""
    if started.get("host") != os.uname().nodename:
        return True
    pid = started.get("pid")
    if not isinstance(pid, int) or not 0 < pid < 1 << 31:
        return False
    with contextlib.suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True


def _run(run: Run, entries: list[Entry], steps: list[StepState], answer: Answer) -> RunState:
    final = tuple(
        step
        if step.source != "nobody"
        else _chain_with_scheduler(run.directory, node, submissions(entries, step.step), answer)
        if node.links
        else _with_scheduler(run.directory, step, submission(entries, step.step), answer)
        for node, step in zip(run.nodes, steps, strict=True)
    )
    origins = {e.get("step"): str(e.get("origin", "")) for e in entries if e.get("event") == "asset"}
    final = tuple(attrs.evolve(step, origin=origins.get(step.step, "")) for step in final)
    return RunState(directory=run.directory, state=run_state(final), steps=final, answer=answer)


def _with_scheduler(directory: Path, step: StepState, last: Submission | None, answer: Answer) -> StepState:
    assert last is not None
    jobs = [job for job in answer.jobs if _is_job_of(job, last)]
    live = next((job for job in jobs if not job.state.over), None)
    if live is not None:
        result = _since(directory, _by_scheduler(step.step, live), answer)
        return (
            attrs.evolve(result, ending=True, reason="cancelled, it is ending") if last.cancelled else result
        )
    ended = exit_record(directory, step.step)
    if ended is None or ended.job not in (last.job, *(job.id for job in jobs)):
        if jobs:
            return _by_scheduler(step.step, jobs[0])
        silent = "the scheduler does not answer" if answer.silent else "its job is unknown to the scheduler"
        return attrs.evolve(step, reason=silent)
    result = _by_exit(step.step, ended, last)
    if not jobs:
        return _while_silent(result) if answer.silent else result
    state = State.CANCELLED if jobs[0].state is State.CANCELLED else result.state
    reason = ", ".join(filter(None, (jobs[0].reason, result.reason)))
    return attrs.evolve(result, state=state, reason=reason, scheduler=jobs[0])


def _since(directory: Path, step: StepState, answer: Answer) -> StepState:
    """The scheduler's word, and what the job wrote since; whether it is queued again, the next word tells."""
    ended = exit_record(directory, step.step)
    if ended is None or ended.job != step.job:
        return step
    with contextlib.suppress(OSError):
        if time.time() - (directory / "steps" / step.step / "exit").stat().st_mtime < answer.age_s:
            reason = f"it ended with exit code {ended.code}, which the scheduler's last answer does not know"
            return attrs.evolve(step, reason=reason, exit_code=ended.code)
    return step


def _chain_with_scheduler(
    directory: Path, node: Node, submitted: tuple[Submission, ...], answer: Answer
) -> StepState:
    """The state of the job that trains, else of the next one; once its chain has ended, of the whole."""
    from hpctrain.run.steps import chained  # most runs have no chain

    live = chained.live(submitted, answer.jobs)
    chain = _chain(directory, node, len(submitted), tuple(job.id for _, job in live))
    running = [(s, job) for s, job in live if job.state is State.RUNNING]
    if chain.ended:  # a waiting job that starts now leaves at once
        running = [(s, job) for s, job in running if job.id == chain.training]
    if running or (live and not chain.ended):
        last, job = (running or live)[0]
        result = attrs.evolve(_by_scheduler(node.name, job), chain=chain)
        if all(s.cancelled for s, _ in live):
            return attrs.evolve(result, ending=True, reason="cancelled, it is ending")
        return result
    ended = exit_record(directory, node.name)
    last = next((s for s in reversed(submitted) if ended and s.job == ended.job), submitted[-1])
    single = StepState(step=node.name, state=State.UNKNOWN, job=last.job, source="nobody")
    result = attrs.evolve(_with_scheduler(directory, single, last, answer), chain=chain)
    if not chain.ended:
        return result
    state = chained.end_state(chain.ended)
    reason = ", ".join(filter(None, (chain.ended, result.reason if state is State.FAILED else "")))
    return attrs.evolve(
        result, state=state, reason=reason, source="exit", ending=bool(live) and last.cancelled
    )


def _while_silent(step: StepState) -> StepState:
    """An attempt that failed may be queued again by now, and who called it failed would start another."""
    if step.state is not State.FAILED:
        return step
    reason = f"{step.reason}; the scheduler does not answer, it may run again"
    return attrs.evolve(step, state=State.UNKNOWN, reason=reason)


def _is_job_of(job: JobState, last: Submission) -> bool:
    """A tag decides; an id alone may be another's after the controller lost its memory."""
    return job.tag == last.tag if job.tag else bool(last.job) and job.id == last.job


def _by_scheduler(step: str, job: JobState) -> StepState:
    return StepState(
        step=step, state=job.state, job=job.id, reason=job.reason, exit_code=job.exit_code,
        source="scheduler", scheduler=job,
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
        attempt=ended.attempt, source="exit",
    )  # fmt: skip
