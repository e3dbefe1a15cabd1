"""What a scheduler said once, and what its plugin makes of it: ids, states, silence, answers that were lost.

Each program of the scheduler is a stand-in that says what the author recorded; nothing else is on the PATH.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

import pytest
from attrs import frozen

from hpctrain.errors import HpctrainError, NotReachable, SubmitError
from hpctrain.model.job import Job, JobState, State
from hpctrain.run.steps.submit import UNCLEAR, Order, job_of
from hpctrain.run.system.tools import Tools
from hpctrain.testing.base import none
from hpctrain.testing.scheduler import SchedulerBase
from hpctrain.testing.scripts import written

TAG = "0123456789abcdef0123456789abcdef"
STATES = {
    "queued": State.QUEUED,
    "running": State.RUNNING,
    "done": State.DONE,
    "failed": State.FAILED,
    "cancelled": State.CANCELLED,
}
MOST_CALLS = 3
"""Programs that one query may start, however many jobs it is about."""

SYSTEM_PROGRAMS = (
    *(
        "awk",
        "bash",
        "cat",
        "cksum",
        "cut",
        "date",
        "env",
        "grep",
        "head",
        "ln",
        "ls",
        "mkdir",
        "mktemp",
        "mv",
    ),
    *("readlink", "rm", "sed", "sh", "sleep", "sort", "tail", "timeout", "tr", "wc"),
)


@frozen
class Answer:
    """What a program said once; `{id}` and `{tag}` in it are those of the kit's job."""

    out: str = ""
    err: str = ""
    code: int = 0


LOST = {
    "it said nothing": Answer(),
    "it was killed": Answer(code=143),
    "it was cut off": Answer(err="Connection reset by peer\n", code=1),
}
"""Ways to lose the answer of any scheduler: the job may exist."""
NONSENSE = Answer(out="<html><title>503 Service Unavailable</title></html>\n")


class AnswerBase(SchedulerBase):
    """The attributes that a subclass sets."""

    job: ClassVar[str] = "4242"
    """The id of the job in `answers`, as `submit_job` returns it."""
    answers: ClassVar[Mapping[str, Mapping[str, Answer]]] = {}
    """Situation -> program -> what it said. At submission: `accepted`, `refused`, `lost`. When it is asked
    for: `queued`, `running`, `done`, `failed`, `cancelled`, `forgotten`, `silent`. When a job that is over is
    cancelled: `over`."""
    queue_options: ClassVar[tuple[str, ...]] = ()
    """The words that ask for the queue in which the job of `queued` is; its limit on
    the jobs of a user is counted by them."""
    live: ClassVar[bool] = False
    """This computer has the scheduler: real jobs are started, and `answers` may be empty."""

    @pytest.fixture
    def spoken(self, tmp_path: Path) -> Callable[..., Spoken]:
        """Programs that say what they said in a situation; `Answer`s in its place are of every program."""

        def speak(situation: str | Answer) -> Spoken:
            if self.live and not self.answers:
                pytest.skip("the scheduler is here and is asked itself (`live`)")
            if isinstance(situation, Answer):
                answers = {name: situation for table in self.answers.values() for name in table}
                answers |= {self._submission(tmp_path).argv[0]: situation}
            else:
                none([] if situation in self.answers else [_missing(situation)])
                answers = dict(self.answers[situation])
            return Spoken(
                self.subject_here().request.session.hooks.call,
                _programs(tmp_path, answers, self.job),
                tmp_path,
            )

        return speak

    def _submission(self, folder: Path) -> Job:
        """The kit's training, written below `folder`, and the command that hands it over."""
        request = self.subject_here().request
        rendered = request.files(request.plan)
        written(rendered.files, folder / "run")
        return job_of(
            Order(
                step="train", directory=str(folder / "run"), submit=rendered.submit, binding=request.binding
            ),
            TAG,
        )


@frozen
class Spoken:
    """A scheduler that says what it said once."""

    call: Callable[..., object]
    tools: Tools
    folder: Path

    def submit(self, job: Job) -> object:
        return self.call("submit_job", job=job, tag=TAG, tools=self.tools)

    def query(self, ids: tuple[str, ...], tags: tuple[str, ...] = ()) -> tuple[JobState, ...]:
        answer = self.call("query_jobs", ids=ids, tags=tags, account="", project=False, tools=self.tools)
        return tuple(answer) if isinstance(answer, (list, tuple)) else ()

    def cancel(self, *ids: str) -> object:
        return self.call("cancel_jobs", ids=ids, tools=self.tools)

    @property
    def programs(self) -> list[str]:
        """What was started, in order."""
        return [Path(call.argv[0]).name for call in self.tools.calls]


class AnswerChecks(AnswerBase):
    """States, unknown ids, lost answers and limits, from recorded words."""

    def test_an_accepted_job_has_its_id_and_is_handed_over_once(
        self, spoken: Callable[..., Spoken], tmp_path: Path
    ) -> None:
        scheduler, job = spoken("accepted"), self._submission(tmp_path)
        assert scheduler.submit(job) == self.job, "submit_job answers the id as query_jobs takes it"
        handed = scheduler.programs.count(Path(job.argv[0]).name)
        none([] if handed == 1 else [f"{job.argv[0]} was started {handed} times for one job"])

    def test_a_refusal_is_one_and_quotes_the_scheduler(
        self, spoken: Callable[..., Spoken], tmp_path: Path
    ) -> None:
        scheduler, job = spoken("refused"), self._submission(tmp_path)
        error = _submit_error(scheduler, job, "a refused job")
        none(
            []
            if error.problems[0].code != UNCLEAR
            else ["a refusal is called unclear: core would look for the job"]
        )
        words = " ".join(a.err + a.out for a in self.answers["refused"].values()).split()
        text = " ".join(f"{p.message} {' '.join(p.notes)}" for p in error.problems)
        none(
            [] if any(word in text for word in words if len(word) > 4) else [f"{text!r} quotes no word of it"]
        )

    @pytest.mark.parametrize("how", ["as recorded", *LOST])
    def test_a_lost_answer_is_no_refusal(
        self, spoken: Callable[..., Spoken], tmp_path: Path, how: str
    ) -> None:
        scheduler = spoken(LOST.get(how, "lost"))
        error = _submit_error(scheduler, self._submission(tmp_path), f"a job whose answer was lost ({how})")
        code = error.problems[0].code
        none(
            []
            if code == UNCLEAR
            else [f"code {code!r} says that no job exists; {UNCLEAR!r} is what nobody knows"],
            f"a lost answer ({how}) would be submitted twice:",
        )

    @pytest.mark.parametrize("situation", STATES)
    def test_every_state_is_known(self, spoken: Callable[..., Spoken], situation: str) -> None:
        jobs = {job.id: job for job in spoken(situation).query((self.job,))}
        none([] if self.job in jobs else [f"{situation}: {self.job} is not in the answer: {sorted(jobs)}"])
        state = jobs[self.job].state
        none([] if state is STATES[situation] else [f"a job that is {situation} is called {state.value}"])

    def test_a_job_is_found_by_its_tag(self, spoken: Callable[..., Spoken]) -> None:
        tagged = [(job.id, job.tag) for job in spoken("running").query((), (TAG,))]
        none([] if (self.job, TAG) in tagged else [f"looked up by tag {TAG} alone: {tagged}"])

    def test_an_unknown_id_is_left_out(self, spoken: Callable[..., Spoken]) -> None:
        jobs = [job for job in spoken("forgotten").query((self.job,)) if job.id == self.job]
        none(
            (f"a job that the scheduler does not know is called {job.state.value}" for job in jobs),
            "leave it out, then it is unknown and never done:",
        )

    def test_a_silent_scheduler_is_not_reachable(self, spoken: Callable[..., Spoken]) -> None:
        for act in ("query", "cancel"):
            scheduler = spoken("silent")
            try:
                answer = scheduler.query((self.job,)) if act == "query" else scheduler.cancel(self.job)
            except NotReachable:
                continue
            none([f"{act} answers {answer!r} to silence: raise NotReachable, then no job is lost"])

    def test_nonsense_is_no_state(self, spoken: Callable[..., Spoken]) -> None:
        try:
            jobs = spoken(NONSENSE).query((self.job,))
        except NotReachable:
            return
        except HpctrainError as error:
            none([f"{NONSENSE.out.strip()} ends in {error}: raise NotReachable with what was said"])
        none(f"{NONSENSE.out.strip()} is read as {job.state.value}" for job in jobs if job.state.over)

    def test_cancelling_what_is_over_is_no_error(self, spoken: Callable[..., Spoken]) -> None:
        answer = spoken("over").cancel(self.job)
        none([] if answer is True else [f"cancel_jobs answers {answer!r}, not True"])

    def test_one_query_is_about_many_jobs(self, spoken: Callable[..., Spoken]) -> None:
        scheduler = spoken("running")
        scheduler.query(tuple(map(str, range(1, 51))))
        calls = len(scheduler.programs)
        none(
            [] if calls <= MOST_CALLS else [f"{calls} programs were started for 50 jobs; ask for all at once"]
        )

    def test_jobs_of_a_queue_can_be_counted(self, spoken: Callable[..., Spoken]) -> None:
        if reason := self.ignores.get("jobs_per_user"):
            pytest.skip(reason)
        none([] if self.queue_options else ["set `queue_options`, or `ignores` with the key jobs_per_user"])
        jobs = [job for job in spoken("queued").query(()) if job.id == self.job]
        none([] if jobs else [f"with no ids and no tags query_jobs leaves out {self.job}: all jobs of yours"])
        none(
            f"{word!r} is not in JobState.queue_options {jobs[0].queue_options}: no limit on jobs would hold"
            for word in self.queue_options
            if word not in jobs[0].queue_options
        )


def _submit_error(scheduler: Spoken, job: Job, job_text: str) -> SubmitError:
    try:
        ident = scheduler.submit(job)
    except SubmitError as error:
        return error
    except HpctrainError as error:
        pytest.fail(f"{job_text} must be a SubmitError, not {type(error).__name__}: {error}", pytrace=False)
    pytest.fail(f"{job_text} must be a SubmitError; submit_job answered {ident!r}", pytrace=False)


def _missing(situation: str) -> str:
    return f'answers["{situation}"] is missing: what do the programs of your scheduler say then?'


def _programs(folder: Path, program_answers: Mapping[str, Answer], job: str) -> Tools:
    """Tools that find these programs and no others."""
    place = folder / "programs"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name, answer in program_answers.items():
        for stream, text in (("out", answer.out), ("err", answer.err)):
            content = text.replace("{id}", job).replace("{tag}", TAG)
            (place / f"{name}.{stream}").write_text(content, encoding="utf-8")
        lines = f"/bin/cat {place}/{name}.out\n/bin/cat {place}/{name}.err >&2\nexit {answer.code}\n"
        (place / name).write_text(f"#!/bin/bash\n{lines}", encoding="utf-8")
        (place / name).chmod(0o755)
    return Tools({"PATH": f"{place}:{_system(folder / 'system')}", "HOME": str(folder)})


def _system(folder: Path) -> Path:
    """What a script of the plugin may call; a scheduler of this computer is not among it."""
    folder.mkdir(exist_ok=True)
    for name in SYSTEM_PROGRAMS:
        program = shutil.which(name, path="/usr/bin:/bin")
        if program and not (folder / name).is_symlink():
            (folder / name).symlink_to(program)
    return folder
