"""The order of events around a submission, with a scheduler that answers as it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from hpctrain.errors import NotReachable, SubmitError
from hpctrain.model.job import Job, JobState, State
from hpctrain.model.step import After, When
from hpctrain.model.words import Cmd, Join, Loc, Raw, Var
from hpctrain.run.disk.record import Record
from hpctrain.run.steps.submit import (
    UNCLEAR,
    Order,
    Patience,
    job_of,
    resume_submission,
    submission,
    submit_step,
)
from tests.schedulers import build

Answer = str | Exception


class Told:
    """A scheduler by script: the answers to submit and to query, in order."""

    def __init__(self, submits: Iterable[Answer], looks: Iterable[str | Exception] = ()) -> None:
        self.submits, self.looks = list(submits), list(looks)
        self.said: list[str] = []
        self.patience = Patience(between=30, silent=90, sleep=lambda s: self.said.append(f"sleep {s:g}"))

    def submit(self, job: Job, tag: str) -> str:
        self.said.append("submit")
        return self._answer(self.submits)

    def query(self, ids: tuple[str, ...], tags: tuple[str, ...]) -> list[JobState]:
        self.said.append("look")
        found = self._answer(self.looks)
        return [JobState(id=found, state=State.QUEUED, tag=tags[0])] if found else []

    def _answer(self, answers: list[Answer]) -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def unclear() -> SubmitError:
    return SubmitError(*SubmitError.of(UNCLEAR, "no answer").problems)


def silent() -> NotReachable:
    return NotReachable(*NotReachable.of("scheduler-silent", "slurm does not answer").problems)


@pytest.fixture
def order(tmp_path: Path) -> Order:
    submit = Cmd.of(
        "sbatch", Join("--after=", Var("HPC_AFTER")), Join("x.", Var("HPC_TAG")), Loc("data", "a b")
    )
    return Order(
        step="train", directory=str(tmp_path), submit=submit, binding=build.binding(tmp_path), environ={}
    )


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / "record.jsonl")


def events(record: Record) -> list[str]:
    return [entry["event"] for entry in record.read()]


def test_the_intent_is_on_disk_before_the_scheduler_is_called(order: Order, record: Record) -> None:
    seen: list[list[str]] = []

    def submit(job: Job, tag: str) -> str:
        seen.append([*events(record), str(record.read()[0]["tag"] == tag and job.argv[1] == f"x.{tag}")])
        return "5"

    assert submit_step(order, record, submit, Told([]).query) == "5"
    assert seen == [["intent", "True"]]
    assert events(record) == ["intent", "submitted"]


@pytest.mark.parametrize(
    ("submits", "looks", "said"),
    [
        (["5"], [], ["submit"]),
        ([unclear()], ["5"], ["submit", "look"]),
        ([unclear()], ["", "5"], ["submit", "look", "sleep 30", "look"]),
        ([unclear()], [silent(), "5"], ["submit", "look", "sleep 30", "look"]),
        ([unclear(), "5"], ["", ""], ["submit", "look", "sleep 30", "look", "submit"]),
        ([unclear(), unclear()], ["", silent(), "", "5"],
         ["submit", "look", "sleep 30", "look", "sleep 30", "look", "submit", "look"]),
    ],
)  # fmt: skip
def test_an_unclear_answer_is_looked_up(
    order: Order, record: Record, submits: list[Answer], looks: list[Answer], said: list[str]
) -> None:
    told = Told(submits, looks)
    assert submit_step(order, record, told.submit, told.query, told.patience) == "5"
    assert told.said == said
    assert events(record) == ["intent", "submitted"]


@pytest.mark.parametrize(("submits", "looks"), [([unclear()], [silent()] * 9), ([unclear()] * 2, [""] * 4)])
def test_what_stays_unclear_is_said_and_can_be_resumed(
    order: Order, record: Record, submits: list[Answer], looks: list[Answer]
) -> None:
    told = Told(submits, looks)
    with pytest.raises(SubmitError) as caught:
        submit_step(order, record, told.submit, told.query, told.patience)
    (problem,) = caught.value.problems
    assert problem.code == "submit-unknown"
    assert problem.hint.startswith("hpctrain continue")
    assert events(record) == ["intent"]
    later = Told([], ["8"])
    assert resume_submission(order, record, later.submit, later.query, later.patience) == "8"
    assert resume_submission(order, record, later.submit, later.query) == "8"
    assert later.said == ["look"]


def test_a_refusal_is_final(order: Order, record: Record) -> None:
    told = Told([SubmitError(*SubmitError.of("refused", "no").problems)])
    with pytest.raises(SubmitError):
        submit_step(order, record, told.submit, told.query)
    assert events(record) == ["intent", "refused"]
    assert resume_submission(order, record, told.submit, told.query) is None


def line(text: str, number: int) -> str:
    return text.splitlines(keepends=True)[number]


DAMAGES: Mapping[str, Callable[[str], str]] = {
    "emptied": lambda text: "",
    "cut off after the first job": lambda text: text[: len(text) // 2],
    "cut off inside a line": lambda text: text[:-20],
    "without the last line": lambda text: text.removesuffix(line(text, -1)),
    "only the first line": lambda text: line(text, 0),
    "zeros, as a crash of the disk's server leaves them": lambda text: "\0" * len(text),
    "zeros at the end": lambda text: text[: len(text) // 2] + "\0" * (len(text) // 2),
    "no line of ours": lambda text: "<<<<<<< HEAD\n",
    "another version's events": lambda text: text.replace('"submitted"', '"handed-in"'),
    "the first job alone, twice": lambda text: text[: len(text) // 2] * 2,
    "other steps": lambda text: text.replace('"train"', '"env"'),
    "the last intent's line zeroed": lambda text: text.replace(line(text, -2), "\0" * 80 + "\n"),
    "line ends lost": lambda text: text.replace("\n", " "),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_record_that_is_emptied_or_cut_off_never_makes_a_second_job(
    order: Order, record: Record, damage: str
) -> None:
    """Two jobs were submitted, as by `continue` after a failed one: the second is found, none is made."""
    first = Told(["5", "6"])
    submit_step(order, record, first.submit, first.query)
    half = record.path.read_text()
    submit_step(order, record, first.submit, first.query)
    assert record.path.read_text().startswith(half)
    record.path.write_text(DAMAGES[damage](record.path.read_text()))
    later = Told([], ["6", "6"])
    assert resume_submission(order, record, later.submit, later.query) == "6"
    assert resume_submission(order, record, later.submit, later.query) == "6"
    assert set(later.said) == {"look"}


def test_the_last_submission_counts() -> None:
    said = [("intent", "a", ""), ("submitted", "a", "1"), ("intent", "b", ""), ("cancelled", "", "")]
    entries = [{"event": e, "step": "train", "tag": t, "job": j} for e, t, j in said]
    found = submission([*entries, {"event": "submitted", "step": "env", "tag": "c", "job": "9"}], "train")
    assert found is not None
    assert (found.tag, found.job, found.cancelled) == ("b", "", True)
    assert submission(entries, "other") is None


def test_words_become_an_argv_without_a_shell(order: Order, tmp_path: Path) -> None:
    import attrs

    plain = job_of(order, "t" * 32)
    assert plain.argv == ("sbatch", "x." + "t" * 32, f"{tmp_path}/data/a b")
    edges = ((After("env"), "3"), (After("data", When.ANY), "4"))
    assert job_of(attrs.evolve(order, after=edges), "t").argv[1] == "--after=afterok:3,afterany:4"


@pytest.mark.parametrize("word", [Var("NOT_SET"), Raw("$(id)")])
def test_a_word_that_only_a_shell_knows_is_refused(order: Order, word: Var | Raw) -> None:
    import attrs

    from hpctrain.errors import HpctrainError

    refuse: Callable[[], Job] = lambda: job_of(attrs.evolve(order, submit=Cmd.of(word)), "t")  # noqa: E731
    with pytest.raises(HpctrainError):
        refuse()
