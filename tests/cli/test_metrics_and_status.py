"""What `status`, `metrics` and an interrupted `submit --wait` show, and words of other programs."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from hpctrain.cli.commands.status import next_command
from hpctrain.cli.table import COMMANDS, OPTION_SYNONYMS, SYNONYMS
from hpctrain.model.job import ChainState, State
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.outcome.spent import job_spans
from hpctrain.run.steps.poll import Answer
from hpctrain.run.steps.status import RunState, StepState
from tests.e2e.product import Product, small
from tests.patience import PATIENCE, wait_for

ROWS = (
    r'printf "{\"step\":%d,\"loss\":%d.5}\n" 1 3 2 2 3 1 > "$HPC_RUN/metrics.jsonl"; '
    r'printf "{\"step\":2,\"eval_loss\":2.25}\n{\"step\":4,\"eval_loss\":1.75}\n" >> "$HPC_RUN/metrics.jsonl"'
)


def test_the_evaluation_is_shown_where_the_loss_is(here: Product) -> None:
    here.write(small(ROWS))
    here("submit", "--wait")
    table = here("metrics").stdout
    assert "eval_loss" in table
    rows = [line.split()[:3] for line in table.splitlines() if line.strip()[:1].isdigit()]
    assert rows[-3:] == [["2", "2.500", "2.250"], ["3", "1.500", "-"], ["4", "-", "1.750"]]
    assert "eval_loss 1.750 at step 4" in here("status").stdout
    assert "wrote loss.svg" in here("metrics", "--picture", "loss.svg").stderr
    assert "eval_loss" in (here.folder / "loss.svg").read_text()
    assert "help: --picture loss.svg\n" in here("metrics", "--picture", "loss.png", code=2).stderr
    assert not (here.folder / "loss.png").exists()


LOST = (
    r'printf "{\"step\":%d,\"loss\":%d.5}\n" 1 9 2 8 3 7 4 6 > "$HPC_RUN/metrics.jsonl"; '
    r'printf "{\"step\":4,\"eval_loss\":6.0}\n" >> "$HPC_RUN/metrics.jsonl"; '
    r'printf "{\"step\":%d,\"loss\":%d.5}\n" 2 5 >> "$HPC_RUN/metrics.jsonl"'
)


def test_what_a_killed_attempt_trained_is_marked_and_counted_once(here: Product) -> None:
    """Its checkpoint was that of step 1, from which the next went on, to step 2 so far."""
    here.write(small(LOST))
    here("submit", "--wait")
    done = here("metrics")
    rows = [line.split() for line in done.stdout.splitlines() if line.strip()[:1].isdigit()]
    assert [row[:2] for row in rows[-2:]] == [["1", "9.500"], ["2", "5.500"]]
    assert "eval_loss" not in done.stdout  # that of step 4 is lost with it
    assert "small/1: steps 3 to 4 are lost: their attempt was killed" in done.stderr
    table = here("metrics", "--all").stdout
    marked = [line.split()[0] for line in table.splitlines() if line.endswith("lost")]
    assert marked == ["3", "4"]
    marks = {row["step"]: row.get("lost") for row in here.json("metrics")["rows"] if "loss" in row}
    assert marks == {1: None, 2: None, 3: True, 4: True}
    here("metrics", "--picture", "loss.svg")
    assert "lost with its attempt" in (here.folder / "loss.svg").read_text()
    assert "step 2 " in here("status").stdout
    here("report", "-o", "report.html")
    report = (here.folder / "report.html").read_text()
    assert "steps 3 to 4 are lost" in report
    assert "step 2" in report


def test_runs_says_what_each_cost(here: Product) -> None:
    here.write(small("sleep 2"))
    here("submit", "--wait")
    (row,) = here.json("runs")["runs"]
    assert 1 / 3600 < row["node_hours"] < 60 / 3600
    assert "NODE-HOURS" in here("runs").stdout
    here.write(small("exit 3"))
    here("submit", "--wait", code=8)
    (span,) = job_spans(RunDirectory(here.run_path("small/2")))
    assert span.code == 3


def test_status_says_where_the_model_is(here: Product) -> None:
    saves = (
        'cd "$HPC_CHECKPOINTS"; mkdir -p checkpoint-5 checkpoint-9 hf/checkpoint-5; touch checkpoint-5/done'
    )
    keys = 'ranks = "once"\ncheckpoints = "."\ncheckpoint_last = "done"'
    here.write(small(saves).replace('ranks = "once"', keys))
    here("submit", "--wait")
    assert "saved        checkpoint-5, " in here("status").stdout  # checkpoint-9 is not whole
    saved = here.json("status")["saved"]
    assert saved["newest"] == f"{saved['folder']}/checkpoint-5"
    assert saved["exported"] is None  # nobody asked for it: the folder is not ours


def test_a_chain_that_was_stopped_or_is_used_up_names_continue() -> None:
    for ended, state in (("stopped: by ada", State.CANCELLED), ("its total time is used up", State.WAITING)):
        chain = ChainState(attempts=3, planned=3, ended=ended)
        step = StepState(step="train", state=state, job="7", chain=chain)
        run = RunState(directory=Path("/x"), state=state, steps=(step,), answer=Answer())
        assert next_command("long/1", run) == "hpctrain continue long/1"


def test_an_interrupted_wait_says_that_the_job_goes_on(here: Product) -> None:
    here.write(small("sleep 30"))
    waiting = here.start("submit", "--wait")
    assert waiting.stderr is not None
    assert any(line.startswith("run    small/1") for line in waiting.stderr)  # it is submitted and waited for
    wait_for("it runs", lambda: here("runs").stdout.count("running") == 1)
    waiting.send_signal(signal.SIGINT)
    _, errors = waiting.communicate(timeout=30 * PATIENCE)
    assert waiting.returncode == 130
    assert "small/1 goes on without this command; hpctrain cancel small/1 ends it" in errors
    assert here.state("small/1") == "running"
    here("cancel", "small/1", "--yes")


def test_a_cancelled_job_that_saved_is_not_said_to_have_met_its_limit(here: Product) -> None:
    here.write(small("trap 'exit 75' TERM; echo ready; while :; do sleep 0.1; done"))
    here("submit")
    wait_for("it is ready", lambda: "ready" in here("logs", "small/1", "train", code=None).stdout)
    here("cancel", "small/1", "--yes")
    wait_for("it is over", lambda: here.state("small/1") == "cancelled")
    shown = here("status").stdout
    assert "it was cancelled; it saved before it ended" in shown
    assert "time limit" not in shown


@pytest.mark.parametrize(("typed", "command"), SYNONYMS.items())
def test_a_word_of_another_program_leads_to_ours(here: Product, typed: str, command: str) -> None:
    assert command.split()[0] in COMMANDS
    assert here(typed, code=2).stderr.endswith(f"help: hpctrain {command}\n")


@pytest.mark.parametrize(("option", "command"), OPTION_SYNONYMS.items())
def test_an_option_that_is_a_command_here(here: Product, option: str, command: str) -> None:
    assert here("submit", option, code=2).stderr.endswith(f"help: hpctrain {command}\n")
    assert "help: --set resources.nodes=" in here("plan", "--nodes", "2", code=2).stderr


def test_the_help_of_every_command_lists_the_options_of_all(here: Product) -> None:
    for words in (("plan",), ("init", "run"), ("status",)):
        assert "Everywhere: --json --quiet" in here(*words, "--help").stdout


@pytest.mark.parametrize(
    ("script", "code"), [("echo well", 0), ("echo badly; exit 3", 8), ("echo killed; kill -9 $$", 8)]
)
def test_logs_that_were_followed_end_as_the_run_does(here: Product, script: str, code: int) -> None:
    here.write(small(f"sleep 1; {script}"))
    here("submit")
    followed = here("logs", "-f", code=code)
    assert followed.stdout.split()[0] == script.split(";")[0].split()[1]
    assert ("error[job-failed]: small/1: step train failed" in followed.stderr) == bool(code)


def test_mail_is_refused_where_nobody_sends_it_and_is_no_part_of_the_digest(here: Product) -> None:
    here.write(small("true"))
    refused = here("submit", "--set", "resources.mail=ada@example.org", code=2).stderr
    assert "error[no-mail]: this computer sends no mail about its jobs" in refused
    assert "error[no-mail]" in here("check", "--set", "resources.mail=ada@example.org", code=2).stderr
    assert "resources.mail" in refused
    assert here.json("runs")["runs"] == []
    with_mail = here.json("plan", "--on", "frontier", "--set", "resources.mail=ada@example.org")
    assert with_mail["digest"] == here.json("plan", "--on", "frontier")["digest"]
    wrong = here("plan", "--set", "resources.mail=x@y --wrap=sh", code=2).stderr
    assert "error[mail]: mail is one address" in wrong


def test_a_job_tells_a_program_of_the_user_how_it_ended(here: Product) -> None:
    tell = here.write(
        '#!/bin/bash\necho "$HPC_EVENT $HPC_CODE ${HPC_RUN##*/} $HPC_JOB $*" >> ~/told; exit 9\n', "tell"
    )
    tell.chmod(0o700)
    notify = f'resources.notify=["{tell}", "a b", "it\'s $HOME"]'
    here.write(small("true"))
    here("submit", "--wait", "--set", notify)
    job = here.json("status", "small/1")["steps"][0]["job"]
    assert f"hpctrain: notify: {tell}: code 9" in here("logs", "small/1", "train").stdout
    here.write(small("exit 3"))
    here("submit", "--wait", "--set", notify, code=8)
    done, failed = (here.home / "told").read_text().splitlines()
    assert done.split(maxsplit=4) == ["done", "0", here.run_path("small/1").name, job, "a b it's $HOME"]
    assert failed.startswith(f"failed 3 {here.run_path('small/2').name} ")
    assert here.json("plan", "--set", notify)["digest"] == here.json("plan")["digest"]
    wrong = here("plan", "--set", 'resources.notify=["bin/tell", "https://x"]', code=2).stderr
    assert wrong.count("error[notify]") == 2


HEARS = """
from pathlib import Path
from hpctrain.plugin import Event, hookimpl

HPCTRAIN_API = 1

@hookimpl
def job_event(event: Event) -> None:
    with Path.home().joinpath("heard").open("a") as file:
        print(event.kind, event.run, event.step, event.detail.get("reason", ""), sep="|", file=file)
"""


def test_who_waits_tells_observers_how_jobs_ended(here: Product) -> None:
    here.write(HEARS, "hears.py")
    here.write(small("exit 3") + '[hooks]\nfile = "hears.py"\n')
    here("submit", "--wait", code=8)
    heard = (here.home / "heard").read_text().splitlines()
    assert heard == ["submitted|small/1|train|", "failed|small/1|train|its commands failed, exit code 3"]


def test_tensorboards_folder_is_named_as_it_wants_it(here: Product) -> None:
    folder = '"$HPC_RUN"/runs/Nov24_node1'
    here.write(small(f"mkdir -p {folder}; touch {folder}/events.out.tfevents.1.node1"))
    here("submit", "--wait")
    path = here.json("status")["tensorboard"]
    assert path.endswith("/runs")
    assert f"tensorboard  --logdir {path}" in here("status").stdout.splitlines()
    here.write(small("true"), "other.toml")
    here("submit", "other.toml", "--wait")
    assert here.json("status")["tensorboard"] is None
