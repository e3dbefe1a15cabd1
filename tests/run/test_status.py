"""States from three sources: the exit record, one question, else unknown."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpctrain.errors import NotReachable
from hpctrain.model.job import JobState, State
from hpctrain.model.words import Loc
from hpctrain.render.graph import Node
from hpctrain.run.disk.record import Record
from hpctrain.run.steps.poll import Poll
from hpctrain.run.steps.status import Run, RunState, StepState, run_state, states

TAG = "a" * 32


def planned(name: str = "train", **fields: Any) -> Node:
    return Node(name=name, here=False, **fields)


class World:
    """A run directory and a scheduler that counts its questions."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked, self.now, self.silent = folder, 0, 1000.0, False
        self.jobs: list[JobState] = []
        self.record = Record(folder / "record.jsonl")
        self.poll = Poll(
            query=self.query, cache=folder / "state/poll.json", floor_s=10, clock=lambda: self.now
        )

    def query(self, ids: tuple[str, ...], tags: tuple[str, ...]) -> list[JobState]:
        self.asked += 1
        if self.silent:
            raise NotReachable(*NotReachable.of("scheduler-silent", "slurm does not answer").problems)
        return self.jobs

    def submitted(self, step: str = "train", tag: str = TAG, job: str = "7") -> None:
        self.record.append("intent", step=step, tag=tag)
        self.record.append("submitted", step=step, tag=tag, job=job)

    def ended(self, step: str = "train", **fields: Any) -> None:
        text = json.dumps({"v": 1, "job": "7", "attempt": 0, "code": 0, "signal": "", **fields})
        self.wrote(text, step)

    def wrote(self, text: str, step: str = "train") -> None:
        path = self.folder / "steps" / step / "exit"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *steps: Node) -> RunState:
        (found,) = states([Run(directory=self.folder, nodes=steps or (planned(),))], self.poll)
        return found

    def step(self) -> StepState:
        return self.run().steps[0]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def job(state: State, **fields: Any) -> JobState:
    return JobState(**{"id": "7", "state": state, "tag": TAG, **fields})


def test_a_job_that_ended_well_needs_no_question(world: World) -> None:
    world.submitted()
    world.ended()
    assert (world.step().state, world.step().source, world.asked) == (State.DONE, "exit", 0)


@pytest.mark.parametrize(
    ("jobs", "exit_", "state", "said"),
    [
        ([], None, State.UNKNOWN, "nobody"),
        ([], {"code": 3}, State.FAILED, "exit"),
        ([], {"code": 3, "job": "6"}, State.UNKNOWN, "nobody"),
        ([job(State.QUEUED)], {"code": 143, "signal": "TERM"}, State.QUEUED, "scheduler"),
        ([job(State.RUNNING)], None, State.RUNNING, "scheduler"),
        ([job(State.FAILED, reason="r")], None, State.FAILED, "scheduler"),
        ([job(State.CANCELLED)], {"code": 143}, State.CANCELLED, "exit"),
        ([job(State.DONE)], None, State.DONE, "scheduler"),
        ([job(State.FAILED)], {"code": 75}, State.WAITING, "exit"),
        ([job(State.DONE, tag="b" * 32)], None, State.UNKNOWN, "nobody"),
        ([job(State.DONE, tag="")], None, State.DONE, "scheduler"),
        ([job(State.DONE, id="9"), job(State.RUNNING)], None, State.RUNNING, "scheduler"),
        ([job(State.DONE, id="9"), job(State.FAILED)], {"code": 2}, State.FAILED, "exit"),
    ],
)  # fmt: skip
def test_who_is_believed(
    world: World, jobs: list[JobState], exit_: dict[str, Any] | None, state: State, said: str
) -> None:
    world.submitted()
    world.jobs = jobs
    if exit_ is not None:
        world.ended(**exit_)
    found = world.step()
    assert (found.state, found.source) == (state, said)


def test_a_failure_is_not_the_last_word_while_the_scheduler_is_silent(world: World) -> None:
    world.submitted()
    world.ended(code=3)
    world.silent = True
    found = world.step()
    assert (found.state, found.exit_code) == (State.UNKNOWN, 3)
    assert found.reason == "exit code 3; the scheduler does not answer, it may run again"
    world.silent = False
    world.now += 10
    assert world.step().state is State.FAILED


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"job": "7"}', '{"job":"7","code":"x"}', "\x00"])
def test_a_torn_exit_record_is_no_word(world: World, text: str) -> None:
    world.submitted()
    world.wrote(text)
    assert world.step().state is State.UNKNOWN


@pytest.mark.parametrize("since", [[], [job(State.QUEUED)]], ids=["forgotten", "queued again"])
def test_a_job_that_was_killed_stays_what_it_was_when_the_scheduler_forgets_it(
    world: World, since: list[JobState]
) -> None:
    """It wrote no record; another run of the same user is asked about in between."""
    world.submitted()
    world.jobs = [job(State.FAILED, reason="it used more memory than it asked for")]
    before = world.step()
    world.jobs, world.now = [], world.now + 60
    world.poll.ask(["8"], ["b" * 32])
    world.jobs, world.now = since, world.now + 60
    after = world.step()
    assert before.state is State.FAILED
    assert (after.state, after.reason) == (
        (since[0].state, since[0].reason) if since else (State.FAILED, before.reason)
    )


def test_an_interrupted_submission_is_found_by_its_tag(world: World) -> None:
    world.record.append("intent", step="train", tag=TAG)
    assert world.step().state is State.UNKNOWN
    world.now += 60
    world.jobs = [job(State.QUEUED)]
    assert (world.step().state, world.step().job) == (State.QUEUED, "7")


def test_the_scheduler_is_asked_once_for_all_and_not_again_too_soon(world: World) -> None:
    world.submitted()
    world.submitted("export", tag="b" * 32, job="8")
    world.jobs = [job(State.RUNNING, nodes=("n1",)), job(State.QUEUED, id="8", tag="b" * 32)]
    steps = (planned(), planned("export"))
    first = world.run(*steps)
    world.now += 9
    again = world.run(*steps)
    assert [s.state for s in again.steps] == [State.RUNNING, State.QUEUED]
    assert again.steps == first.steps
    assert (world.asked, first.answer.age_s, again.answer.age_s) == (1, 0, 9)
    world.now += 1
    world.run(*steps)
    assert world.asked == 2


def test_an_answer_about_other_jobs_is_no_answer(world: World) -> None:
    world.submitted()
    world.jobs = [job(State.RUNNING)]
    world.step()
    world.submitted("export", tag="b" * 32, job="8")
    world.run(planned("export"))
    assert world.asked == 2
    assert world.step().state is State.RUNNING
    assert world.asked == 2  # the second question was about both


def test_a_silent_scheduler_keeps_the_last_state_with_its_age(world: World) -> None:
    world.submitted()
    world.silent = True
    assert (world.step().state, world.step().reason) == (State.UNKNOWN, "the scheduler does not answer")
    world.silent, world.jobs = False, [job(State.RUNNING)]
    world.now += 10
    world.step()
    world.silent = True
    world.now += 300
    found = world.run()
    assert (found.steps[0].state, found.answer.age_s) == (State.RUNNING, 300)
    assert found.answer.silent[0].code == "scheduler-silent"


def test_a_silent_scheduler_is_left_alone_as_long_as_one_that_answers(world: World) -> None:
    world.submitted()
    world.silent = True
    for _ in range(5):
        assert world.run().answer.silent[0].message == "slurm does not answer"
        world.now += 1.9
    assert world.asked == 1
    world.now += 1
    world.silent, world.jobs = False, [job(State.RUNNING)]
    assert (world.step().state, world.asked) == (State.RUNNING, 2)
    assert not world.run().answer.silent


def test_a_cache_that_cannot_be_read_is_no_cache(world: World) -> None:
    world.submitted()
    world.jobs = [job(State.RUNNING)]
    world.step()
    assert world.poll.cache.stat().st_mode & 0o077 == 0
    for text in ("", "{}", '{"at": 1e9, "ids": ["7"], "tags": [], "jobs": [{"state": "odd"}]}', "[]"):
        world.poll.cache.write_text(text)
        assert world.step().state is State.RUNNING
    assert world.asked == 5


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ([], State.PLANNED),
        ([("step-started", {"host": os.uname().nodename, "pid": os.getpid()})], State.RUNNING),
        ([("step-started", {"host": os.uname().nodename, "pid": 2**22 + 1})], State.FAILED),
        ([("step-started", {"host": "another", "pid": 1})], State.RUNNING),
        ([("step-started", {}), ("step-ended", {"code": 0})], State.DONE),
        ([("step-started", {}), ("step-ended", {"code": 1})], State.FAILED),
        ([("step-started", {}), ("step-ended", {"code": None})], State.FAILED),
    ],
)  # fmt: skip
def test_steps_of_this_machine(world: World, events: list[tuple[str, dict[str, Any]]], state: State) -> None:
    for event, fields in events:
        world.record.append(event, step="train", **fields)
    assert world.step().state is state
    assert world.asked == 0


def test_a_login_step_behind_a_job_waits_and_a_builder_builds(world: World) -> None:
    assert world.run(planned(waits=True)).steps[0].state is State.WAITING
    world.record.append("step-started", step="train", host=os.uname().nodename, pid=os.getpid())
    assert world.run(planned(makes=Loc("env", "x"))).state is State.BUILDING


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("done done", State.DONE), ("done failed queued", State.FAILED), ("done queued", State.QUEUED),
        ("running queued", State.RUNNING), ("done planned", State.PLANNED), ("unknown done", State.UNKNOWN),
        ("waiting done", State.WAITING), ("cancelled done", State.CANCELLED), ("", State.PLANNED),
    ],
)  # fmt: skip
def test_one_word_for_a_run(words: str, state: State) -> None:
    make: Callable[[str], StepState] = lambda word: StepState(step="s", state=State(word))  # noqa: E731
    assert run_state(map(make, words.split())) is state


def test_a_job_that_ended_since_the_last_answer_says_so(world: World) -> None:
    """Until the scheduler may be asked again nobody knows whether it is queued again."""
    world.submitted()
    world.jobs = [job(State.RUNNING)]
    assert world.step().reason == ""
    world.now += 9
    world.ended(code=1)
    found = world.step()
    assert (found.state, found.exit_code, world.asked) == (State.RUNNING, 1, 1)
    assert found.reason == "it ended with exit code 1, which the scheduler's last answer does not know"
    world.now += 9
    assert (world.step().reason, world.asked) == ("", 2)  # a fresh answer knows: it runs again
    world.jobs = []
    world.now += 11
    assert world.step().state is State.FAILED
