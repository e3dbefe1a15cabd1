"""Which network each node took: the job reads it from the ranks' logs, and ends on a slow one, or says so."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import attrs
import pytest

from hpctrain.model.run import Resources, RunSpec
from hpctrain.model.step import Launch, Ranks, Step
from hpctrain.plan.fact_layers import training_layer
from hpctrain.run.prepare import jobzip
from hpctrain.runfile.facts import load_facts
from hpctrain_job.fabric.lines import NodeNetwork
from tests.conftest import ROOT

SCRIPT = ROOT / "core/hpctrain/render/job.sh"
CXI = "node1:7:7 [0] NCCL INFO NET/OFI Selected Provider is cxi (found 4 nics)"
SOCKET = "node1:7:7 [0] NCCL INFO Using network Socket"
LIMIT = 20


def job(
    folder: Path, ranks: str, proof: str, refuse: str, *, on_slow: str = "stop", nodes: int = 1
) -> tuple[subprocess.CompletedProcess[str], float]:
    """A job's script around `ranks`, as rendered ones are: same helpers, same order. Each node has two ranks,
    of which the first writes what `ranks` prints on NODE."""
    (folder / "steps/train").mkdir(parents=True, exist_ok=True)
    (folder / "code").mkdir(exist_ok=True)
    (folder / "code/job.zip").write_bytes(jobzip.build().data)
    (folder / "rank.sh").write_text(
        f"for NODE in $(seq 0 {nodes - 1}); do\n"
        f"( exec >>logs/train.rank$((2 * NODE)).log 2>&1\n"
        f'  echo "hpctrain: rank $((2 * NODE)) on nid$NODE, job 1, attempt 0"\n{ranks}\n) &\n'
        "done\nwait -n\nexit $?\n"
    )
    script = (
        f"set -euo pipefail; export HPC_STEP=train HPC_JOB=1 HPC_ATTEMPT=0 HPC_PYTHON={sys.executable}\n"
        f". {SCRIPT.with_name('identity.sh')}; . {SCRIPT}\n"
        'hpc_begin_job; hpc_fabric "$@"; hpc_start bash rank.sh'
    )
    began = time.monotonic()
    words = (
        f"--nodes={nodes}",
        "--per-node=2",
        f"--on-slow={on_slow}",
        f"--proof={proof}",
        f"--refuse={refuse}",
    )
    argv = ("bash", "-c", script, "bash", *words)
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=2 * LIMIT)
    return done, time.monotonic() - began


def lines_of(*lines: str) -> str:
    return "\n".join(f"echo '{line}'" for line in lines)


def facts(name: str) -> tuple[str, str]:
    network = load_facts(ROOT / f"hpc_{name}/hpc_{name}").cluster.network
    return network.proof, network.refuse


def test_a_slow_network_ends_the_job_with_its_line(tmp_path: Path) -> None:
    done, seconds = job(tmp_path, f"echo '{SOCKET}'; exec sleep {LIMIT}", *facts("alps"))
    assert done.returncode == 78
    assert seconds < LIMIT
    assert f"stopped, the nodes do not talk over the fast network: nid0: {SOCKET}" in done.stderr
    assert (tmp_path / "steps/train/fabric").read_text() == f"refused: nid0: {SOCKET}\n"
    end = json.loads((tmp_path / "steps/train/exit").read_text())
    assert (end["code"], end["signal"]) == (78, "")
    assert not (tmp_path / "steps/train/finished").exists()


def test_the_fabric_is_proven_and_the_training_goes_on(tmp_path: Path) -> None:
    done, _ = job(tmp_path, f"echo '{CXI}'; sleep 4; echo end", *facts("olivia"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "steps/train/fabric").read_text() == f"proven: {CXI}\n"


PLUGIN = "node1:7:7 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.19.1"
CHANNEL = "node1:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 4[0] [send] via NET/Libfabric/0/GDRDMA(PXN)"
STAGED = "node1:7:9 [0] NCCL INFO Channel 01/0 : 0[0] -> 4[0] [send] via NET/Libfabric/1"
INSIDE = "node1:7:9 [0] NCCL INFO Channel 02/0 : 0[0] -> 1[1] via P2P/CUMEM/read"


def test_every_node_says_what_it_took_and_who_differs_is_named(tmp_path: Path) -> None:
    ranks = f"""
{lines_of(PLUGIN, CHANNEL, INSIDE)}
if ((NODE == 2)); then echo '{CXI.replace("4 nics", "3 nics")}'; echo '{STAGED}'; else echo '{CXI}'; fi
sleep 5"""
    done, _ = job(tmp_path, ranks, *facts("olivia"), nodes=3)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "steps/train/fabric.json").read_text())
    assert document["nodes"].keys() == {"nid0", "nid1", "nid2"}
    assert document["nodes"]["nid0"] == {
        "state": "proven", "line": CXI, "plugin": "aws-ofi-nccl 1.19.1", "network": "", "provider": "cxi",
        "adapters": 4, "channels": {"NET/Libfabric": 1, "P2P": 1}, "gpu_direct": 1,
    }  # fmt: skip
    assert document["nodes"]["nid2"]["channels"] == {"NET/Libfabric": 2, "P2P": 1}
    assert "network: 3 of 3 nodes over cxi, aws-ofi-nccl 1.19.1, 4 adapters each" in done.stderr
    assert "GPU-direct on 3 of 4 channels" in done.stderr
    assert "network: nid2 has 3 adapters, most nodes 4" in done.stderr


@pytest.mark.parametrize("on_slow", ["stop", "say"])
def test_one_slow_node_of_three_stops_the_job_or_is_said(tmp_path: Path, on_slow: str) -> None:
    ranks = f"if ((NODE == 1)); then echo '{SOCKET}'; else echo '{CXI}'; fi\nsleep 5"
    done, _ = job(tmp_path, ranks, *facts("olivia"), nodes=3, on_slow=on_slow)
    assert done.returncode == (78 if on_slow == "stop" else 0), done.stderr
    assert f"the nodes do not talk over the fast network: nid1: {SOCKET}" in done.stderr
    assert ("stopped" in done.stderr) == (on_slow == "stop")
    document = json.loads((tmp_path / "steps/train/fabric.json").read_text())
    assert document["nodes"]["nid1"]["state"] == "refused"


def test_infiniband_counts_its_adapters_and_asks_no_provider() -> None:
    network = NodeNetwork()
    for line in (
        "NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB [3]mlx5_3:1/IB [RO]; OOB ib0",
        "NCCL INFO Using network IB",
        "NCCL INFO Channel 00 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA",
        "NCCL INFO Channel 01/0 : 1[1] -> 2[2] via SHM/direct/direct",
    ):
        network.read(line, *map(re.compile, facts("leonardo")))
    assert (network.adapters, network.network, network.over_network, network.gpu_direct) == (4, "IB", 1, 1)
    assert network.document()["state"] == "proven"


def test_one_node_is_not_asked_and_neither_is_who_turned_it_off() -> None:
    cluster = load_facts(ROOT / "hpc_alps/hpc_alps").cluster
    step = Step(
        name="train",
        commands=(),
        launch=Launch(ranks=Ranks.PER_GPU, nodes=2, gpus_per_node=4),
        trains=True,
    )
    run = RunSpec(name="r", cluster="alps")
    two, one = training_layer(cluster, step, run), training_layer(cluster, evolve(step, nodes=1), run)
    words = [word for line in two.job for word in getattr(line, "argv", ())]
    assert {"--nodes=2", "--per-node=4", "--on-slow=stop"} <= set(map(str, words))
    assert not one.job
    assert "NCCL_DEBUG" not in {var.name for var in one.env}
    off = attrs.evolve(run, resources=Resources(on_slow_network="off"))
    assert not training_layer(cluster, step, off).job


def evolve(step: Step, nodes: int) -> Step:
    return attrs.evolve(step, launch=attrs.evolve(step.launch, nodes=nodes))


def test_what_an_earlier_attempt_wrote_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/train.rank0.log").write_text(SOCKET + "\n")
    done, _ = job(tmp_path, "sleep 2", *facts("frontier"))
    assert done.returncode == 0
    assert not (tmp_path / "steps/train/fabric").exists()


def test_a_training_that_says_nothing_of_networks_ends_as_it_would(tmp_path: Path) -> None:
    done, _ = job(tmp_path, "echo loss 1; exit 3", *facts("leonardo"))
    assert done.returncode == 3


@pytest.mark.parametrize("name", ["alps", "frontier", "isambard", "leonardo", "olivia"])
def test_the_facts_tell_the_two_apart_in_grep_as_in_python(name: str) -> None:
    proof, refuse = facts(name)
    lines = [
        CXI,
        SOCKET,
        "x NCCL INFO NET/OFI Selected Provider is tcp (found 1 nics)",
        "x NCCL INFO Using network IB",
        "x NCCL INFO NET/IB : No device found.",
        "x NCCL INFO NET/OFI No eligible providers were found",
    ]
    for pattern in (proof, refuse):
        argv = ("grep", "-P", "--", pattern)
        found = subprocess.run(argv, input="\n".join(lines), capture_output=True, text=True, timeout=LIMIT)
        assert found.stdout.splitlines() == [line for line in lines if re.search(pattern, line)]
        assert found.stdout
