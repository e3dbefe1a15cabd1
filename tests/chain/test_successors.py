"""Jobs that hand over further ones: each exactly once, with the answers that a scheduler may give."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hpctrain_job.chain.successors import Handover
from tests.chain import killed_job
from tests.chain.rig import ChainRun, environ, plan
from tests.rig.slurm import REPO

MOMENTS = 10
"""Of two jobs: before and after an intent, the answer, before and after it is written down."""
QUEUE = """\
case $1 in
  submit)
    [[ ! -e say ]] || { cat say; exit 1; }
    env >"environ.$HPC_TAG"
    echo "$HPC_TAG $HPC_AFTER" >>queue
    [[ ! -e silent ]] || { echo "sbatch: error: Socket timed out on send/recv operation"; exit 1; }
    wc -l <queue
    ;;
  find) [[ ! -e down ]] || exit 1; grep -n "^$HPC_TAG" queue | cut -d: -f1 || : ;;
esac
"""
"""A stand-in for a scheduler: jobs are lines of a file."""


def a_run(home: Path, scheduler: str = "local") -> ChainRun:
    home.mkdir(exist_ok=True)
    script = "exec sleep 300"
    return ChainRun.create(home, plan(scheduler, script, total="9h", time="1h", jobs=3), environ())


@pytest.mark.parametrize("number", range(1, MOMENTS + 1))
def test_a_job_killed_at_any_moment_leaves_each_of_the_next_ones_once(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    run = a_run(tmp_path)
    run.submit()
    jobs = tmp_path / ".local/state/hpctrain/jobs"
    monkeypatch.setenv("HPC_STATE", str(jobs))
    env = {**os.environ, "PYTHONPATH": f"{REPO}/core:{REPO}/plugins:{REPO}"}
    argv = (sys.executable, "-m", killed_job.__name__, str(run.path), "2", run.submitted()[-1], str(number))
    assert subprocess.run(argv, env=env, timeout=60).returncode == -9
    handover = run.step.handover()
    assert handover is not None
    handover.hand_over(5 - len(run.submitted()), run.submitted()[-1], apart=0.2)
    tags = Counter(e["tag"] for e in run.live.directory.record.read() if e["event"] == "submitted")
    assert (len(tags), set(tags.values())) == (5, {1})
    assert len([*jobs.glob("*.job")]) == 5
    assert sorted(run.submitted()) == sorted(path.stem for path in jobs.glob("*.job"))
    run.live.cancel()


@pytest.fixture
def handover(tmp_path: Path) -> Handover:
    """Of a run for Slurm, whose programs are the stand-in above."""
    run = a_run(tmp_path, "slurm")
    (run.path / "steps/train/next.sh").write_text(f'cd "$HPC_RUN"\n{QUEUE}')
    handover = run.step.handover()
    assert handover is not None
    return handover


def queued(handover: Handover) -> list[list[str]]:
    path = handover.run / "queue"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def test_each_comes_behind_the_one_before(handover: Handover) -> None:
    assert handover.hand_over(2, "7", None) == ["1", "2"]
    assert [after for _, after in queued(handover)] == ["afterany:7", "afterany:1"]


def test_options_of_this_job_are_not_the_next_ones(
    handover: Handover, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLURM_NTASKS", "SBATCH_PARTITION", "HPC_SECRETS", "PYTHONPATH"):
        monkeypatch.setenv(name, "mine")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    handover.hand_over(1, "7", None)
    ((tag, _),) = queued(handover)
    environment = dict(
        line.split("=", 1) for line in (handover.run / f"environ.{tag}").read_text().splitlines()
    )
    assert "mine" not in environment.values()
    assert environment["SLURM_CONF"] == "/etc/slurm.conf"


def test_a_refusal_is_written_down_and_asked_again_later(
    handover: Handover, capfd: pytest.CaptureFixture[str]
) -> None:
    refusal = "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy"
    (handover.run / "say").write_text(refusal)
    assert handover.hand_over(2, "7", None) == []
    assert refusal in capfd.readouterr().err
    assert [s.refused for s in handover.submissions()] == [True]
    (handover.run / "say").unlink()
    assert handover.hand_over(2, "7", None) == ["1", "2"]


def test_a_job_whose_answer_was_lost_is_found_and_not_asked_for_again(handover: Handover) -> None:
    (handover.run / "silent").touch()
    assert handover.hand_over(2, "7", None) == []
    assert len(queued(handover)) == 1
    (handover.run / "silent").unlink()
    assert handover.hand_over(2, "7", None) == ["1", "2"]
    assert [after for _, after in queued(handover)] == ["afterany:7", "afterany:1"]


def test_what_nobody_knows_is_left_alone_while_there_is_no_time_or_no_answer(handover: Handover) -> None:
    (handover.run / "say").write_text("sbatch: error: Unable to contact slurm controller")
    assert handover.hand_over(1, "7", None) == []
    (handover.run / "say").unlink()
    assert handover.hand_over(1, "7", None) == [], "one look is not enough, and this job has no time for two"
    (handover.run / "down").touch()
    assert handover.hand_over(1, "7", apart=0.1) == [], "silence proves nothing"
    assert queued(handover) == []
    (handover.run / "down").unlink()
    (tag,) = (submission.tag for submission in handover.submissions())
    assert handover.hand_over(1, "7", apart=0.1) == ["1"]
    assert queued(handover) == [[tag, "afterany:7"]], "the same tag"


def test_of_several_at_once_one_hands_over(handover: Handover) -> None:
    with ThreadPoolExecutor(6) as pool:
        answers = [*pool.map(lambda _: handover.hand_over(2, "7", None), range(6))]
    assert len(queued(handover)) == sum(map(len, answers))
    assert len(queued(handover)) % 2 == 0
    tags = [tag for tag, _ in queued(handover)]
    assert len(tags) == len(set(tags)) == len(handover.submissions())


def test_a_torn_line_of_the_record_hides_no_other(handover: Handover) -> None:
    handover.hand_over(1, "7", None)
    with (handover.run / "record.jsonl").open("a") as file:
        file.write('{"v": 1, "event": "inte')
    assert handover.hand_over(1, "1", None) == ["2"]
    assert [s.job for s in handover.submissions()] == ["1", "2"]
