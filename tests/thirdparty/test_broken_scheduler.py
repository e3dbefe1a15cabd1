"""A scheduler's plugin that answers nonsense is named; no job is lost by it, and none is made twice."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.hooks.dists import distribution
from tests.thirdparty.scratch import Scratch, rewrite

OAK = "oak (hpctrain-oak 0.7)"
FILES = "step_files(step, plan, binding, Shape(job=(), rank=()))"
TAGGED = "Cmd.of('true', Var('HPC_TAG'))"
PLUGIN = """\
from hpctrain.plugin import *

HPCTRAIN_API = 1


@hookimpl
def render_job(step, plan, binding):
    return {render}


@hookimpl
def submit_job(job, tools):
    return {submit}


@hookimpl
def query_jobs(ids, tags, tools):
    return {query}


@hookimpl
def cancel_jobs(ids, tools):
    return {cancel}
"""
WHOLE = {
    "render": f"JobFiles(files={FILES}, submit={TAGGED})",
    "submit": "'7'",
    "query": "[JobState(id=i, state=State.RUNNING) for i in ids]",
    "cancel": "True",
}


@attrs.frozen
class Login:
    """A user on a login node whose cluster speaks to the scheduler oak."""

    installed: Scratch
    folder: Path

    def plugin(self, **changes: str) -> None:
        """Oak's module with other answers."""
        rewrite(self.installed.site / "hpctrain_oak.py", PLUGIN.format(**(WHOLE | changes)))

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        home = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "USER": "me", "LANG": "C.UTF-8"}
        program = str(self.installed.folder / "bin/hpctrain")
        done = subprocess.run(
            [program, *argv], cwd=self.folder, env=home, capture_output=True, text=True, timeout=120
        )
        assert "Traceback" not in done.stderr
        return done

    def __call__(self, *argv: str) -> tuple[int, str]:
        done = self.run(*argv)
        return done.returncode, done.stderr

    def submit(self) -> tuple[int, str]:
        return self("submit", "run.toml", "--account", "abc123")

    @property
    def runs(self) -> list[Path]:
        return sorted((self.folder / "runs").glob("two-nodes/*"))


@pytest.fixture
def login(installed: Scratch, run_file: Path) -> Iterator[Login]:
    """LUMI with oak in place of Slurm, and its folders in the user's home."""
    facts = installed.site / "hpc_lumi/cluster.toml"
    whole = facts.read_text()
    here = re.sub(r'path = "/[^"]*/(\w+)"', r'path = "{home}/\1"', whole).replace("slurm", "oak")
    facts.write_text(re.sub("(?m)^detect = .*", "detect = ['.']", here))
    run_file.write_text(run_file.read_text().replace('use = "ready"', 'use = ""'))
    distribution(installed.site, "hpctrain-oak", "0.7", {"hpctrain.schedulers": {"oak": "hpctrain_oak"}}, {})
    yield Login(installed, run_file.parent)
    facts.write_text(whole)
    shutil.rmtree(installed.site / "hpctrain_oak-0.7.dist-info")
    (installed.site / "hpctrain_oak.py").unlink()


def test_the_whole_scheduler_takes_a_job(login: Login) -> None:
    login.plugin()
    assert login.submit()[0] == 0
    assert login("status", "two-nodes")[0] == 0
    assert login("cancel", "two-nodes", "--yes")[0] == 0


UNWRITTEN = {
    "no JobFiles": ("'sbatch'", "render_job returned str, not JobFiles"),
    "a file elsewhere": (
        f"JobFiles(files={FILES} | {{'../../evil': 'x'}}, submit={TAGGED})",
        'JobFiles.files has "../../evil", which is not in the run directory',
    ),
    "no script": (
        f"JobFiles(files={{'steps/train/pbs.sh': ''}}, submit={TAGGED})",
        "JobFiles.files has no steps/STEP/job.sh",
    ),
    "no tag": (
        f"JobFiles(files={FILES}, submit=Cmd.of('true'))",
        'JobFiles.submit has no Var("HPC_TAG"), by which a job is found whose id got lost',
    ),
    "nothing": ("None", "no plugin of this run answers render_job; asked: schedulers:oak (hpctrain-oak 0.7)"),
}


@pytest.mark.parametrize("answer", UNWRITTEN)
def test_scripts_that_cannot_be_are_never_written(login: Login, answer: str) -> None:
    render, said = UNWRITTEN[answer]
    login.plugin(render=render)
    code, error = login.submit()
    assert (code, said in error, "oak (hpctrain-oak 0.7)" in error) == (3, True, True), error
    assert not login.runs
    assert not (login.folder / "evil").exists()


UNCLEAR = {
    "a number": ("7", "submit_job returned int, not str"),
    "what the program printed": (
        "'Submitted batch\\njob 7'",
        "submit_job returned 'Submitted batch\\njob 7', not the job's id",
    ),
    "an error": ("{}['id']", "submit_job raised KeyError: 'id'"),
}


@pytest.mark.parametrize("answer", UNCLEAR)
def test_a_job_whose_id_is_nonsense_is_found_again_by_its_tag(login: Login, answer: str) -> None:
    submit, said = UNCLEAR[answer]
    login.plugin(submit=submit)
    code, error = login.submit()
    assert (code, said in error, OAK in error) == (3, True, True), error
    # The author mends it; the job was in the queue all the time.
    login.plugin(
        submit="{}['never again']", query="[JobState(id='7', tag=t, state=State.RUNNING) for t in tags]"
    )
    assert login("continue", "two-nodes")[0] == 0
    record = (login.runs[0] / "record.jsonl").read_text()
    assert record.count('"submitted"') == 1
    assert '"adopted": true' in record or '"adopted":true' in record


SILENT = {
    "tables": ("[{'id': '7'}]", "query_jobs returned dict among its answers, not JobState"),
    "a word": ("'R'", "query_jobs returned 'R', not several JobState"),
    "a state in its own word": (
        "[JobState(id='7', state='R')]",
        "query_jobs: JobState.state is a string; a State is needed",
    ),
    "an error": ("{}['7']", "query_jobs raised KeyError: '7'"),
    "nothing": ("None", f"no plugin of this run answers query_jobs; asked: schedulers:{OAK}"),
}


@pytest.mark.parametrize("answer", SILENT)
def test_states_that_are_nonsense_are_nobodys_states(login: Login, answer: str) -> None:
    query, said = SILENT[answer]
    login.plugin()
    assert login.submit()[0] == 0  # where a queue takes so many jobs of a user, it asks too
    login.plugin(query=query)
    for command in (("status",), ("cancel", "--yes"), ("continue",)):
        code, error = login(command[0], "two-nodes", *command[1:])
        assert (code, said in error, OAK in error) == (3, True, True), error
    assert login("runs")[0] == 0  # the list of all runs has others, too
    login.plugin()
    assert login("status", "two-nodes") == (0, "")


def test_a_cancelling_that_answers_nonsense_has_cancelled_nothing(login: Login) -> None:
    login.plugin(cancel="'ok'")
    login.submit()
    code, error = login("cancel", "two-nodes", "--yes")
    assert (code, f"{OAK}: cancel_jobs returned str, not bool" in error) == (3, True), error
    assert '"cancelled"' not in (login.runs[0] / "record.jsonl").read_text()


PROMISES = {
    "mail": (
        ("resources.mail=ada@example.org",),
        "error[no-mail]: the scheduler of lumi, oak, sends no mail",
    ),
    "requeue": (
        ("resources.total=10h", "resources.requeue=true"),
        "error[scheduler-ignores]: oak queues no job of lumi again: the training would end after one attempt",
    ),
    "total": (
        ("resources.total=10h",),
        "error[scheduler-ignores]: no job of oak hands over the next one: 2 of 20 would train",
    ),
}


@pytest.mark.parametrize("command", ["plan", "check", "submit", "eject"])
@pytest.mark.parametrize("key", PROMISES)
def test_what_it_cannot_do_is_refused_by_every_command(login: Login, key: str, command: str) -> None:
    login.plugin()
    facts = login.installed.site / "hpc_lumi/cluster.toml"
    facts.write_text(re.sub(r"jobs_per_user *= \d+", "jobs_per_user = 2", facts.read_text()))
    values, message = PROMISES[key]
    words = [word for value in values for word in ("--set", value)]
    code, error = login(command, "run.toml", "--account", "abc123", *words)
    assert (code, message in error) == (2, True), error
    assert f"resources.{key}" in error
    assert not login.runs
    assert not (login.folder / "two-nodes").exists()  # where eject would have written


def test_nodes_that_it_does_not_measure_are_said(login: Login) -> None:
    login.plugin()
    argv = ("plan", "run.toml", "--account", "abc123")
    shown = login.run(*argv, "--set", "resources.vet=true").stdout
    assert "oak measures no node of lumi before the training" in shown
    assert "\nvetting" not in shown
    assert "measures" not in login.run(*argv).stdout
