"""What Slurm says, from recorded outputs of several versions and sites."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from hpctrain.errors import NotReachable, SubmitError
from hpctrain.model.job import Job, State
from hpctrain.run.steps.submit import UNCLEAR
from hpctrain.run.system.tools import Tools
from hpctrain_plugins.schedulers import slurm_query as query
from hpctrain_plugins.schedulers import slurm_submit, slurm_words
from hpctrain_plugins.schedulers.slurm_words import hosts

TAG = "0123456789abcdef0123456789abcdef"
JOB = Job(step="train", directory="/", name="train", argv=("sbatch",))


def fakes(folder: Path, **bodies: str) -> Tools:
    """Tools that find only these programs: recorded answers, not a Slurm."""
    for name, body in bodies.items():
        path = folder / name
        path.write_text(f"#!{shutil.which('bash')}\n{body}\n")
        path.chmod(0o755)
    return Tools({"PATH": f"{folder}:{os.environ['PATH']}"})


def row(**fields: str) -> str:
    base = {"JobID": "7", "State": "RUNNING", "exit_code": "0", "Reason": "None", "TimeUsed": "1:02",
            "TimeLimit": "1-00:00:00", "StartTime": "2026-01-01T00:00:00", "NodeList": "n[1-2]",
            "Partition": "batch", "QOS": "normal", "Name": f"r.train.{TAG}",
            "Comment": f"hpctrain:{TAG}"}  # fmt: skip
    return query.SEPARATOR.join({**base, **fields}[name] for name in query.SQUEUE.split(","))


def shown(lines: list[str]) -> str:
    return "cat <<'END'\n" + "\n".join(lines) + "\nEND"


def test_one_call_answers_ids_and_tags(tmp_path: Path) -> None:
    lines = [
        row(),
        row(JobID="8", Name="other", Comment="(null)"),
        row(JobID="9", State="FAILED", exit_code="768"),
    ]
    tools = fakes(tmp_path, squeue=shown(["site banner: maintenance on Monday", *lines]))
    found = query.states(("8",), (TAG,), tools)
    assert [(s.id, s.state) for s in found] == [
        ("7", State.RUNNING),
        ("8", State.RUNNING),
        ("9", State.FAILED),
    ]
    assert (found[0].nodes, found[0].elapsed_s, found[0].limit_s) == (("n1", "n2"), 62, 86400)
    assert found[2].exit_code == 3
    assert [call.argv[0] for call in tools.calls] == ["squeue"]


LINE = {
    "all see all": (("1 Resources a", "9 Dependency a", "2 Priority a,b", "7 Priority a"), 3),
    "first": (("7 Resources a", "2 Priority a"), 1),
    "of another partition": (("1 Resources b", "7 Resources a"), 1),
    "others are hidden": (("6 Priority a", "7 Priority a"), None),
    "it began meanwhile": (("2 Resources a",), None),
    "nobody answers": ((), None),
}


@pytest.mark.parametrize("case", LINE)
def test_the_place_among_all_who_wait(tmp_path: Path, case: str) -> None:
    lines, place = LINE[case]
    others = [query.SEPARATOR.join((*line.split(), "")) for line in lines]
    mine = row(State="PENDING", Reason="Priority", Partition="a")
    answers = f"if [[ $* == *--me* ]]; then {shown([mine])}\nelse {shown(['a banner', *others])}\nfi"
    tools = fakes(tmp_path, squeue=answers)
    (job,) = query.states(("7",), (), tools)
    assert job.position == place
    assert "--partition=a" in tools.calls[1].argv


def test_who_does_not_wait_for_nodes_has_no_place_and_costs_no_question(tmp_path: Path) -> None:
    tools = fakes(tmp_path, squeue=shown([row(State="PENDING", Reason="Dependency")]))
    (job,) = query.states(("7",), (), tools)
    assert job.position is None
    assert len(tools.calls) == 1


@pytest.mark.parametrize("hidden", [{"Comment": "(null)"}, {"Name": "renamed"}, {"Comment": "a|b"}])
def test_a_tag_is_found_in_name_or_comment(tmp_path: Path, hidden: Mapping[str, str]) -> None:
    tools = fakes(tmp_path, squeue=shown([row(**hidden)]))
    assert [s.tag for s in query.states((), (TAG,), tools)] == [TAG]


def test_accounting_knows_what_squeue_forgot_and_the_newest_row_counts(tmp_path: Path) -> None:
    rows = [
        "5|NODE_FAIL|1:0|None|00:00:10|01:00:00|2026-01-01T00:00:00|n1|batch|normal|r.env|",
        f"5|CANCELLED by 1000|0:15|None|00:10|01:00:00|Unknown|None assigned|batch|normal|r.train.{TAG}|",
    ]
    tools = fakes(tmp_path, squeue="", sacct=shown(rows))
    (found,) = query.states(("5",), (), tools)
    assert (found.state, found.exit_code, found.nodes, found.start) == (State.CANCELLED, 143, (), "")
    assert [s.id for s in query.states((), (TAG,), tools)] == ["5"]
    assert "--jobs=5" in tools.calls[1].argv
    assert f"--starttime={query.SINCE}" in tools.calls[3].argv


@pytest.mark.parametrize("sacct", ["echo Slurm accounting storage is disabled >&2; exit 1", "kill -9 $$"])
def test_without_accounting_a_forgotten_job_is_missing(tmp_path: Path, sacct: str) -> None:
    assert query.states(("5",), (TAG,), fakes(tmp_path, squeue="", sacct=sacct)) == []


def test_a_silent_controller_is_not_an_empty_queue(tmp_path: Path) -> None:
    said = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
    tools = fakes(tmp_path, squeue=f"echo '{said}' >&2; exit 1")
    with pytest.raises(NotReachable) as caught:
        query.states(("5",), (), tools)
    assert caught.value.problems[0].notes == (said,)


def test_a_machine_without_slurm_says_so() -> None:
    with pytest.raises(NotReachable):
        query.states(("5",), (), Tools({"PATH": "/nowhere"}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n1", ("n1",)),
        ("nid[000098-000101]", ("nid000098", "nid000099", "nid000100", "nid000101")),
        ("a[1,3-4],b2", ("a1", "a3", "a4", "b2")),
        ("r[1-2]c[7,9]", ("r1c7", "r1c9", "r2c7", "r2c9")),
        ("", ()),
    ],
)
def test_compressed_hosts(text: str, expected: tuple[str, ...]) -> None:
    assert hosts(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0:05", 5),
        ("1:00:00", 3600),
        ("2-03:04:05", 183845),
        ("1-00", 86400),
        ("UNLIMITED", None),
        ("", None),
    ],
)
def test_slurms_durations(text: str, expected: int | None) -> None:
    assert query.seconds(text) == expected


def test_reasons_are_in_our_words_with_slurms_own() -> None:
    assert slurm_words.reason("Priority") == "jobs of higher priority come first (Priority)"
    assert slurm_words.reason("None", "TIMEOUT") == "it ran into its time limit (TIMEOUT)"
    assert slurm_words.reason("ReqNodeNotAvail, UnavailableNodes:n1").endswith("(ReqNodeNotAvail)")
    assert slurm_words.reason("SomethingNew") == "SomethingNew"
    assert slurm_words.reason("None", "RUNNING") == ""
    assert slurm_words.state("MADE_UP") is State.UNKNOWN


REFUSALS = [
    "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
    "sbatch: error: Batch job submission failed: Requested node configuration is not available",
    "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job violates",
    "sbatch: error: Please give a project\nsbatch: error: Batch job submission failed: Unspecified error",
    "sbatch: unrecognized option '--bogus'\nTry \"sbatch --help\" for more information",
    "sbatch: error: Unable to open file steps/train/job.sh",
]
DOUBTS = [
    "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
    "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
    "sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received",
    "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying",
    "Connection reset by peer",
    "",
]


@pytest.mark.parametrize("said", REFUSALS)
def test_the_controllers_no_is_a_refusal(said: str) -> None:
    (problem,) = slurm_submit.judged(JOB, said).problems
    assert problem.code == "refused"


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("QOSMaxWallDurationPerJobLimit", "ask for less time"),
        ("QOSMaxSubmitJobPerUserLimit", "wait until one"),
        ("QOSMaxNodePerJobLimit", "ask for fewer nodes"),
        ("AssocMaxWallDurationPerJobLimit", "ask for less time"),
        ("", "wait until one"),
    ],
)
def test_a_limits_own_name_decides_the_hint(reason: str, hint: str) -> None:
    policy = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
    said = f"sbatch: error: {reason}\nsbatch: error: Batch job submission failed: {policy}"
    (problem,) = slurm_submit.judged(JOB, said).problems
    assert problem.hint.startswith(hint)


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("sbatch: error: invalid account or expired budget", "the project's budget"),
        ("sbatch: error: AssocGrpBillingMinutes", "the project's budget"),
        ("sbatch: error: Memory specification can not be satisfied", "ask for less memory"),
        ("Invalid account or account/partition combination specified", "set your project"),
    ],
)
def test_a_sites_own_words_decide_the_hint(said: str, hint: str) -> None:
    policy = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
    end = f"sbatch: error: Batch job submission failed: {policy}"
    (problem,) = slurm_submit.judged(JOB, f"{said}\n{end}").problems
    assert problem.code == "refused"
    assert problem.hint.startswith(hint)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("QOSMaxMemoryPerUser", "your jobs hold as much memory"),
        ("AssocGrpGRESMinutes", "the project's budget"),
        ("JobHoldMaxRequeue", "it was started again too often"),
    ],
)
def test_why_jobs_of_our_sites_wait(word: str, said: str) -> None:
    assert slurm_words.reason(word).startswith(said)


@pytest.mark.parametrize("said", DOUBTS)
def test_everything_else_is_doubt(said: str) -> None:
    (problem,) = slurm_submit.judged(JOB, said).problems
    assert problem.code == UNCLEAR


@pytest.mark.parametrize("out", ["42", "42;cluster", "Welcome!\n42\n", "site: 1 job queued\n42;c1"])
def test_an_id_in_any_line_is_the_answer(tmp_path: Path, out: str) -> None:
    tools = fakes(tmp_path, sbatch=shown([out]))
    assert slurm_submit.submitted(JOB, tools) == "42"


@pytest.mark.parametrize("body", ["exit 0", "kill -9 $$", "echo Submitted; exit 0"])
def test_no_id_is_doubt_whatever_the_code(tmp_path: Path, body: str) -> None:
    with pytest.raises(SubmitError) as caught:
        slurm_submit.submitted(JOB, fakes(tmp_path, sbatch=body))
    assert caught.value.problems[0].code == UNCLEAR


@pytest.mark.parametrize(
    "said", ["scancel: error: Invalid job id 5", "scancel: error: Job has already completed"]
)
def test_cancelling_what_is_gone_is_no_error(tmp_path: Path, said: str) -> None:
    assert query.cancelled(("5",), fakes(tmp_path, scancel=f"echo '{said}' >&2; exit 1"))


def test_cancelling_without_an_answer_is_an_error(tmp_path: Path) -> None:
    tools = fakes(tmp_path, scancel="echo 'scancel: error: Socket timed out' >&2; exit 1")
    with pytest.raises(NotReachable):
        query.cancelled(("5",), tools)
    assert query.cancelled((), tools)
