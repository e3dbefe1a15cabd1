"""exec, shell and run --here on a real Slurm: a job of their own, or the user's."""

from __future__ import annotations

import json
import re

import pytest

from hpctrain.doctor import together
from tests.e2e.product import Product
from tests.e2e.terminal import typed
from tests.e2e.test_on_slurm import on_rig, pair, until
from tests.patience import wait_for
from tests.rig.slurm import Rig

pytestmark = pytest.mark.slurm


def test_exec_runs_on_a_node_and_returns_its_code(alice: Product, slurm: Rig) -> None:
    alice.write(on_rig("true", '\n[env]\nMINE = "yes"\n'))
    done = alice(
        "exec",
        "--gpus",
        "2",
        "--",
        "bash",
        "-c",
        'echo "$SLURMD_NODENAME"; echo "$MINE $HPC_GPUS"; exit 5',
        code=5,
    )
    assert re.fullmatch(r"n[12]\nyes 2\n", done.stdout)
    limit = alice("exec", "--time", "3d", "--", "true", code=2).stderr
    assert "--> --time" in limit
    assert "help: --time 1d" in limit
    assert slurm.run("squeue", "-h", "-ualice", "-o%i").stdout == ""


def test_a_shell_on_a_node_ends_with_its_allocation(alice: Product, slurm: Rig) -> None:
    alice.write(on_rig("true", '\n[env]\nMINE = "yes"\n'))
    lines = ['echo $SLURMD_NODENAME; echo "[$MINE]"', "exit 3"]
    code, shown = typed(alice.argv("shell"), lines, cwd="/", env=alice.environment)
    assert code == 3, shown
    assert len(re.findall(r"\rn[12]\r\n|\nn[12]\r\n", shown)) == 1, shown
    assert "[yes]" in shown
    gone = lambda: slurm.run("squeue", "-h", "-ualice", "-o%i").stdout == ""  # noqa: E731
    wait_for("no job of alice", gone)
    code, shown = typed(alice.argv("shell"), ["scancel $HPC_JOB"], cwd="/", env=alice.environment)
    assert code == 8, shown
    assert "the allocation ended under the shell" in shown
    wait_for("no job of alice", gone)


def test_run_here_uses_the_allocation_around_it(alice: Product, slurm: Rig) -> None:
    alice.write(pair('echo "rank $HPC_RANK of $HPC_WORLD on $SLURMD_NODENAME"'))
    refused = alice("run", "--here", code=6).stderr
    assert "login is a login node of rig, and in no job of yours" in refused
    small = Product(alice.home, alice.folder, alice.environ, (*alice.before, "salloc", "-N1", "-t5"))
    assert "the run takes 2 nodes" in small("run", "--here", code=2).stderr
    few = Product(alice.home, alice.folder, alice.environ, (*alice.before, "salloc", "-N2", "-n2", "-t5"))
    refusal = few("run", "--here", code=2).stderr
    assert re.search(r"the run takes 4 cores of each node, job \d+ holds 1", refusal), refusal
    both = Product(
        alice.home,
        alice.folder,
        alice.environ,
        (*alice.before, "salloc", "-N2", "--exclusive", "--gres=gpu:4", "-t9"),
    )
    assert both("run", "--here").stdout == "pair/1\n"
    assert until(alice, "pair", "done")["steps"][0]["job"] is None
    said = [alice("logs", "pair", "--rank", str(rank), "-n", "500").stdout for rank in (0, 1)]
    assert {line.rpartition(" ")[2] for line in said} == {"n1\n", "n2\n"}


def test_doctor_asks_two_nodes_in_one_job(alice: Product, slurm: Rig) -> None:
    told = json.loads(alice("doctor", "rig", "--job", "-N", "2", "--json", code=None).stdout)
    rows = {row["fact"]: row for row in told["findings"] if row["area"] == "compute nodes"}
    assert rows["nodes that answered"]["verdict"] == "ok", rows
    assert re.fullmatch(r"2: (\S+):0 \1:1", rows["nodes that answered"]["found"]), "the rig is one host"
    assert rows["the clock beside the login node's"]["verdict"] == "ok"
    assert rows["cgroup of this shell"]["verdict"] == "not known"
    assert rows[together.VALUES]["found"] == "right: all_reduce over sockets", rows
    assert re.fullmatch(r"\d+\.\d\d GB/s a node, 16 MB over sockets", rows[together.BANDWIDTH]["found"])
    assert "--python" in rows[together.BANDWIDTH]["todo"]
    assert slurm.run("squeue", "-h", "-ualice", "-o%i").stdout == ""
    assert "--job -N 2" in alice("doctor", "rig", "-N", "2", code=2).stderr
    late = alice("doctor", "rig", "--job", "-N", "9", code=2).stderr
    assert "--nodes" in late
