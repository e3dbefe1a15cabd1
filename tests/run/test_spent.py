"""What a run cost, from what its jobs noted, and from the signs of those that left no word."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.outcome.spent import job_spans, moment, node_hours
from hpctrain.ui import text

NOON = 1_795_176_000.0


def noted(run: RunDirectory, *notes: tuple[str, str, int, str], step: str = "train") -> None:
    """Lines as job.sh writes them: event, job, nodes, time of day."""
    folder = run.path / "steps" / step
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        {"v": 1, "event": event, "job": job, "attempt": 0, "nodes": nodes, "at": f"2026-11-20T{at}Z"}
        for event, job, nodes, at in notes
    ]
    (folder / "jobs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    (tmp_path / "logs").mkdir()
    return RunDirectory(tmp_path)


def test_noon() -> None:
    assert moment("2026-11-20T12:00:00Z") == NOON
    assert moment("noon") is None


def test_every_start_of_every_step_counts(run: RunDirectory) -> None:
    noted(run, ("began", "7", 4, "12:00:00"), ("ended", "7", 4, "12:30:00"))
    noted(run, ("began", "8", 1, "13:00:00"), ("ended", "8", 1, "13:15:00"), step="export")
    spans = job_spans(run)
    assert [(span.step, span.seconds) for span in spans] == [("train", 1800), ("export", 900)]
    assert node_hours(spans) == 4 * 0.5 + 0.25


def test_a_job_that_was_killed_ended_when_it_last_wrote(run: RunDirectory) -> None:
    noted(run, ("began", "7", 2, "12:00:00"), ("began", "7", 2, "13:00:00"), ("ended", "7", 2, "13:10:00"))
    log = run.log("train")
    log.write_text("step 1\n")
    os.utime(log, (NOON + 600, NOON + 600))
    assert [span.seconds for span in job_spans(run)] == [600, 600]
    os.utime(log, (NOON + 9000, NOON + 9000))  # the later start wrote into the same log
    assert job_spans(run)[0].seconds == 3600


def test_a_running_job_costs_until_now(run: RunDirectory) -> None:
    noted(run, ("began", "7", 2, "12:00:00"))
    assert job_spans(run)[0].seconds == 0  # nobody says that it runs, and it wrote nothing
    (span,) = job_spans(run, {"7"})
    assert span.is_running
    assert span.seconds > 3600


def test_a_note_that_is_torn_or_foreign_is_left_out(run: RunDirectory) -> None:
    noted(run, ("began", "7", 4, "12:00:00"), ("ended", "9", 4, "12:01:00"), ("ended", "7", 4, "12:30:00"))
    notes = run.path / "steps/train/jobs.jsonl"
    notes.write_text(f'{notes.read_text()}{{"event":"began","at":"yesterday"}}\n{{"event":"began","at":"2026')
    assert [span.seconds for span in job_spans(run)] == [1800]


def test_where_nothing_was_noted_the_cost_is_not_known(run: RunDirectory) -> None:
    assert node_hours(job_spans(run)) is None
    assert [text.hours(cost) for cost in (None, 0.0, 0.01, 0.26, 11.4, 6912.2)] == [
        "-", "0.0", "<0.1", "0.3", "11", "6,912",
    ]  # fmt: skip
