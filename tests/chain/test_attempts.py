"""The attempts on a disk: what job.sh tells, what is written, what it is told to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hpctrain_job import attempts
from hpctrain_job.attempts import Step, cause
from hpctrain_job.chain import decision, room
from hpctrain_job.chain.decision import Cause

TERMS = {"v": 1, "total": 300, "time": 60, "links": 6, "avoid": 2}
LAYOUT = {"folder": "", "name": r"step-(?P<step>\d+)", "complete": "done"}


@pytest.fixture
def step(tmp_path: Path) -> Step:
    step = Step(tmp_path, "train", tmp_path / "checkpoints")
    step.folder.mkdir(parents=True)
    write_terms(step)
    submitted(step, "1", "2", "3")
    return step


def submitted(step: Step, *jobs: str) -> None:
    with (step.run / "record.jsonl").open("a") as file:
        for job in jobs:
            file.write(
                json.dumps({"event": "submitted", "step": "train", "tag": f"t{job}", "job": job}) + "\n"
            )


def saved(step: Step, number: int) -> None:
    folder = step.run / "checkpoints" / f"step-{number}"
    folder.mkdir(parents=True)
    (folder / "done").touch()


def write_terms(step: Step, **terms: object) -> None:
    (step.folder / "chain.json").write_text(json.dumps({**TERMS, "checkpoints": LAYOUT, **terms}))


def told(step: Step, event: str, *words: str) -> list[str]:
    """As job.sh asks: a process that sees only what travels to the job."""
    done = subprocess.run(
        [sys.executable, "-S", "-m", "hpctrain_job.attempts", event, f"--run={step.run}", "--step=train",
         f"--checkpoints={step.checkpoints}", f"--stop={step.run}/stop", *words],
        env={"PYTHONPATH": str(Path(attempts.__file__).parents[1])},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.split("\n")[:-1]


def test_an_attempt_that_saved_is_followed_by_the_next(step: Step) -> None:
    assert told(step, "begin", "--job=1", "--nodes=n1\nn2") == [""]
    saved(step, 40)
    assert told(step, "end", "--job=1", "--code=75", "--signal=USR1") == [""]
    assert step.ended == ""
    (attempt,) = step.record().attempts
    assert (attempt.cause, attempt.first_step, attempt.last_step) == (Cause.SAVED, 0, 40)
    assert attempt.nodes == ("n1", "n2")
    assert step.record(step.submitted()).waiting == ("2", "3")


def test_the_end_takes_the_waiting_jobs_out_of_the_queue_and_later_ones_leave(step: Step) -> None:
    told(step, "begin", "--job=1")
    (step.folder / "finished").touch()
    assert told(step, "end", "--job=1", "--code=0") == ["drop 2 3"]
    assert step.ended == "finished"
    assert told(step, "begin", "--job=2") == ["leave finished"]
    assert [event["event"] for event in step.events()] == ["began", "ended", "chain-ended"]


@pytest.mark.parametrize(("code", "why"), [(78, "wrong setting"), (65, "diverged")])
def test_what_the_next_attempt_would_meet_again_ends_the_chain(step: Step, code: int, why: str) -> None:
    told(step, "begin", "--job=1")
    assert told(step, "end", "--job=1", f"--code={code}") == ["drop 2 3"]
    assert step.ended == why


def test_a_refused_network_is_told_from_a_wrong_setting(step: Step) -> None:
    told(step, "begin", "--job=1")
    (step.folder / "fabric").write_text("refused: NET/Socket")
    told(step, "end", "--job=1", "--code=78")
    assert step.ended == "refused network"


def test_an_attempt_without_a_word_is_closed_by_the_next_one_with_when_it_last_wrote(step: Step) -> None:
    told(step, "begin", "--job=1")
    began = step.record().attempts[0].began
    events = (step.folder / "attempts.jsonl").read_text().replace(f'"at": {began}', f'"at": {began - 30}')
    (step.folder / "attempts.jsonl").write_text(events)
    log = step.run / "logs/train.log"
    log.parent.mkdir()
    log.touch()
    os.utime(log, (began - 23, began - 23))
    assert told(step, "begin", "--job=2") == [""]
    first, second = step.record().attempts
    assert first.cause is Cause.LOST
    assert first.ended == pytest.approx(began - 23, abs=0.2)
    assert second.is_open


def test_a_job_that_is_requeued_stays_away_from_its_node_after_that(step: Step) -> None:
    write_terms(step, requeue=True)
    told(step, "begin", "--job=1", "--nodes=n1\nn2")
    assert told(step, "end", "--job=1", "--code=1", "--nodes=n2") == ["requeue 1", "avoid n2 1"]
    told(step, "begin", "--job=1", "--nodes=n1\nn3")
    told(step, "begin", "--job=1", "--nodes=n1\nn3")
    causes = [attempt.cause for attempt in step.record().attempts]
    assert causes == [Cause.NODE, Cause.LOST, None], "Slurm queued it again, which left no word"


def test_attempts_without_room_for_another_checkpoint(step: Step) -> None:
    """What failed for want of room is tried twice more, without ranks where there is none still."""
    write_terms(step, time=1)
    saved(step, 40)
    told(step, "begin", "--job=1")
    free = shutil.disk_usage(step.run).free
    weights = step.run / "checkpoints/step-40/weights"
    with weights.open("wb") as file:
        file.truncate(free + (1 << 30))  # a hole takes no room, and is as large as what it stands for
    assert "GB left, and a checkpoint takes " in room.lack(step.whole)
    assert told(step, "end", "--job=1", "--code=75") == [""], "what saved had room"
    assert told(step, "begin", "--job=2") == [""], "nobody knows yet that it cannot do without"
    assert told(step, "end", "--job=2", "--code=1") == [""]
    assert told(step, "begin", "--job=3") == ["leave full disk"]
    assert [attempt.cause for attempt in step.record().attempts] == [Cause.SAVED, Cause.FULL, Cause.FULL]
    weights.unlink()
    submitted(step, "4", "5")
    assert told(step, "begin", "--job=4") == [""], "somebody made room"
    with weights.open("wb") as file:
        file.truncate(free + (1 << 30))
    assert told(step, "end", "--job=4", "--code=1") == ["drop 5"]
    assert step.ended == "full disk"
    step.reopen()
    assert told(step, "begin", "--job=6") == [""], "a person went on"


def test_damaged_checkpoints_are_told_from_a_wrong_setting(step: Step) -> None:
    told(step, "begin", "--job=1")
    (step.folder / "nothing-whole").touch()
    told(step, "end", "--job=1", "--code=78")
    assert step.ended == "damaged checkpoints"


def test_a_node_fault_is_told_to_the_waiting_jobs(step: Step) -> None:
    told(step, "begin", "--job=1", "--nodes=n1\nn2")
    assert told(step, "end", "--job=1", "--code=1", "--nodes=n2") == ["avoid n2 2 3"]
    assert step.record().avoided == ("n2",)


def test_a_stop_file_ends_it(step: Step) -> None:
    told(step, "begin", "--job=1")
    (step.run / "stop").touch()
    assert told(step, "end", "--job=1", "--code=75", "--signal=USR1") == ["drop 2 3"]
    assert step.ended == f"stopped: {step.run}/stop is there"


def test_a_person_opens_it_again(step: Step) -> None:
    told(step, "begin", "--job=1")
    told(step, "end", "--job=1", "--code=78")
    step.reopen()
    submitted(step, "4")
    assert step.ended == ""
    assert told(step, "begin", "--job=4") == [""]
    assert step.record().attempts[-1].job == "4"


def test_torn_lines_and_those_for_people_are_passed_over(step: Step) -> None:
    told(step, "begin", "--job=1")
    with (step.folder / "attempts.jsonl").open("a") as file:
        file.write('{"event": "note"}\nnull\n{"event": "began", "jo')
    assert len(step.record().attempts) == 1


def test_unknown_checkpoints_are_no_progress_and_no_lack_of_it(step: Step) -> None:
    write_terms(step, checkpoints=None)
    told(step, "begin", "--job=1")
    told(step, "end", "--job=1", "--code=1")
    assert step.record().attempts[0].last_step is None


@pytest.mark.parametrize(
    ("code", "told", "said", "share", "expected"),
    [
        (0, "", "", 0.5, Cause.FINISHED),
        (0, "TERM", "cancelled", 0.5, Cause.FINISHED),
        (75, "USR1", "", 0.95, Cause.SAVED),
        (75, "USR1", "", 0.5, Cause.SAVED),
        (75, "TERM", "limit", 1.0, Cause.SAVED),
        (75, "TERM", "cancelled", 0.3, Cause.CANCELLED),
        (75, "TERM", "taken", 0.3, Cause.TAKEN),
        (75, "TERM", "", 0.3, Cause.CANCELLED),
        (143, "TERM", "", 0.3, Cause.CANCELLED),
        (143, "TERM", "", 1.0, Cause.LIMIT),
        (143, "TERM", "limit", 1.0, Cause.LIMIT),
        (143, "TERM", "node", 0.2, Cause.NODE),
        (143, "TERM", "taken", 0.2, Cause.TAKEN),
        (65, "", "", 0.2, Cause.DIVERGED),
        (78, "", "", 0.2, Cause.SETTING),
        (1, "", "", 0.2, Cause.FAILED),
        (70, "USR1", "", 0.99, Cause.FAILED),
        (138, "USR1", "", 0.99, Cause.LIMIT),
        (138, "", "", 0.5, Cause.FAILED),
    ],
)
def test_causes(code: int, told: str, said: str, share: float, expected: Cause) -> None:
    assert cause(code, told, said, is_refused=False, lost_nodes=False, share=share) is expected


def test_the_judge_in_the_job_is_the_one_of_the_simulator() -> None:
    assert vars(attempts)["decision"].decide is decision.decide
