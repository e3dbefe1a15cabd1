"""A user of a cluster that speaks PBS, whose machine is a stand-in: submit, watch, cancel, go on, eject."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import needs
from tests.e2e.ejected import carried_out, poisoned
from tests.e2e.product import PROGRAM, SYSTEM, Product, installed
from tests.patience import wait_for
from tests.standin_pbs.cluster import write_cluster
from tests.standin_pbs.fixtures import Standin

PAIR = """\
name    = "pair"
cluster = "pines"

[resources]
nodes = 2
time  = "5m"

[environment]
use = ""

[train]
use = "command"
[train.command]
ranks = "{ranks}"
argv  = {argv}
"""


def pair(script: str, *more: str, ranks: str = "per_node") -> str:
    """A run file for two nodes whose program is this line of bash."""
    return PAIR.format(ranks=ranks, argv=json.dumps(["bash", "-c", script])) + "\n".join(more)


@pytest.fixture
def standin(tmp_path: Path) -> Iterator[Standin]:
    found = Standin(tmp_path)
    yield found
    found.clean()


@pytest.fixture
def alice(standin: Standin, tmp_path: Path) -> Product:
    """A user of the login node."""
    installed()
    there = any(entry.name == "pbs" for entry in entry_points(group="hpctrain.schedulers"))
    needs("installed", there, "hpctrain-plugins was installed before it had pbs (make setup)")
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    path = f"{standin.bin}:{PROGRAM.parent}:{SYSTEM}"
    environ = {"PATH": path, "PYTHONPATH": str(write_cluster(tmp_path / "site")), "CANARY": "1"}
    return Product(tmp_path / "home", tmp_path / "work", environ)


def until(user: Product, title: str, *states: str, seconds: float = 60) -> dict[str, Any]:
    """Wait until the run has one of these states."""
    found: dict[str, Any] = {}

    def there() -> bool:
        found.update(user.json("status", title))
        return found["state"] in states

    wait_for(f"{title} {'/'.join(states)}", there, seconds)
    return found


def test_two_nodes_of_ranks_from_submit_to_the_end(alice: Product, standin: Standin) -> None:
    say = 'echo "rank $HPC_RANK of $HPC_WORLD on $STANDIN_NODE sees $CUDA_VISIBLE_DEVICES $SITE_LICENCE"; env'
    alice.write(pair(say, ranks="per_gpu"))
    assert alice("submit", "run.toml", SITE_LICENCE="it's ours").stdout == "pair/1\n"
    found = until(alice, "pair", "done")
    logs = [p.read_text() for p in sorted(Path(found["path"]).glob("logs/train.rank*.log"))]
    placed = [text.splitlines()[0] for text in logs]
    assert all(line.startswith(f"hpctrain: rank {r} on ") for r, line in enumerate(placed))
    second = [text.splitlines()[1] for text in logs]
    assert second == [f"rank {r} of 8 on node{1 + r // 4} sees {r % 4} it's ours" for r in range(8)]
    assert "CANARY" not in "".join(logs)
    assert all("OMP_NUM_THREADS=1\n" in log for log in logs)  # PBS says all cores of a node to each rank
    (row,) = standin.jobs.values()
    assert row["Resource_List"]["select"] == "2:ncpus=64:mpiprocs=4:ngpus=4"
    assert (row["queue"], row["Resource_List"]["filesystems"]) == ("capacity", "home")


def test_a_plan_does_not_promise_what_pbs_cannot(alice: Product) -> None:
    """Nodes that failed are used: qsub names those that a job wants, never those that it does not."""
    alice.write(pair("true"))
    alice("nodes", "avoid", "node3", "--on", "pines")
    said = alice("plan", "run.toml").stdout
    assert "used, though they failed, for pbs keeps no job away from nodes: node3" in " ".join(said.split())
    assert "without node3" not in said


def test_a_failed_job_says_so_and_continue_submits_it_again(alice: Product) -> None:
    alice.write(pair("echo once >>tries.$HPC_RANK; [[ $(wc -l <tries.$HPC_RANK) == 2 ]] || exit 3"))
    assert "error[job-failed]" in alice("submit", "run.toml", "--wait", code=8).stderr
    failed = alice.json("status", "pair")
    assert (failed["state"], failed["steps"][0]["exit_code"]) == ("failed", 3)
    alice("continue", "pair")
    again = until(alice, "pair", "done")
    assert again["steps"][0]["job"] != failed["steps"][0]["job"]


def test_cancel_ends_a_long_job_on_two_nodes(alice: Product, standin: Standin) -> None:
    alice.write(pair('echo "$HPC_RANK" >>began; exec sleep 300'))
    alice("submit", "run.toml")
    path = alice.run_path("pair")
    wait_for("both ranks", lambda: (path / "began").exists() and len((path / "began").read_text()) == 4)
    alice("cancel", "pair/1", "--yes")
    assert until(alice, "pair", "cancelled")["steps"][0]["state"] == "cancelled"
    (row,) = standin.jobs.values()
    assert (row["job_state"], row["substate"]) == ("F", 91)


def test_a_lost_answer_of_qsub_makes_no_second_job(alice: Product, standin: Standin) -> None:
    standin.set(lost="accepted")
    alice.write(pair("echo once >>count.$HPC_RANK"))
    assert alice("submit", "run.toml").stdout == "pair/1\n"
    found = until(alice, "pair", "done")
    assert list(standin.jobs) == [found["steps"][0]["job"]]
    alice("continue", "pair")
    assert len(standin.jobs) == 1
    assert (Path(found["path"]) / "count.0").read_text() == "once\n"


def test_a_queue_that_is_full_is_said_before_anything_is_submitted(alice: Product, standin: Standin) -> None:
    alice.write(pair("sleep 300").replace("nodes = 2", 'nodes = 1\nqueue = "debug"'))
    alice("submit", "run.toml")
    said = alice("submit", "run.toml", code=None)
    assert "error[jobs-per-user]" in said.stderr
    assert len(standin.jobs) == 1


def test_an_ejected_chain_runs_without_hpctrain(alice: Product, standin: Standin) -> None:
    alice.write(pair("cat {assets.first}", '\n[assets]\nfirst = { command = ["x"] }\n'))
    script = alice("eject", "run.toml", "-o", "out").stdout.strip()
    environ = poisoned(alice.home)
    environ["PATH"] = f"{standin.bin}:{environ['PATH']}"
    said = carried_out(script, environ | {"HOME": str(alice.home)}, limit=120)
    first, train = standin.jobs
    assert f"train job {train}" in said
    assert standin.jobs[train]["stime"] >= standin.jobs[first]["obittime"]
    assert (alice.folder / "out/logs/train.rank0.log").read_text().splitlines()[1:] == [first]


def test_an_ejected_chain_whose_first_job_fails_trains_nothing(alice: Product, standin: Standin) -> None:
    alice.write(pair("echo trained", '\n[assets]\nfirst = { command = ["x"] }\n'))
    script = alice("eject", "run.toml", "-o", "out").stdout.strip()
    task = alice.folder / "out/steps/first/task.sh"
    task.write_text("exit 3\n")
    environ = poisoned(alice.home)
    environ["PATH"] = f"{standin.bin}:{environ['PATH']}"
    with pytest.raises(AssertionError, match="step first ended badly"):
        carried_out(script, environ | {"HOME": str(alice.home)})
    wait_for("the end", lambda: all(row["job_state"] == "F" for row in standin.jobs.values()), 60)
    assert not list((alice.folder / "out/logs").glob("train*"))


def test_run_here_uses_the_nodes_of_the_job_around_it(
    alice: Product, standin: Standin, tmp_path: Path
) -> None:
    """A shell of qsub -I has these variables, by the recording of a job's environment."""
    (tmp_path / "sleep.sh").write_text("#!/bin/bash\nsleep 300\n")
    words = ("-l", "select=2:ncpus=64:mpiprocs=1:ngpus=4", "-l", "place=scatter", "-l", "walltime=01:00:00")
    environ = {**os.environ, "HOME": str(alice.home)}
    job = standin.run("qsub", *words, "sleep.sh", cwd=tmp_path, env=environ).stdout.strip()
    nodes = standin.folder.path / f"{job}.nodes"
    wait_for("the job", nodes.exists)
    alice.write(pair('echo "rank $HPC_RANK of $HPC_WORLD in $HPC_JOB on $STANDIN_NODE"'))
    inside: dict[str, Any] = {
        "PBS_JOBID": job,
        "PBS_NODEFILE": str(nodes),
        "NCPUS": "64",
        "PBS_O_WORKDIR": "/nowhere",
    }
    alice("run", "run.toml", "--here", **inside)
    path = alice.run_path("pair")
    logs = [p.read_text().splitlines() for p in sorted(path.glob("logs/train.rank*.log"))]
    assert [lines[1:] for lines in logs] == [[f"rank {r} of 2 in {job} on node{r + 1}"] for r in range(2)]
    assert len(standin.jobs) == 1
