"""Which network the ranks took: the job reads it from rank 0's log, and ends on a slow one."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

import pytest

from hpctrain.runfile.facts import load_facts
from tests.conftest import ROOT

SCRIPT = ROOT / "core/hpctrain/render/job.sh"
CXI = "node1:7:7 [0] NCCL INFO NET/OFI Selected Provider is cxi (found 4 nics)"
SOCKET = "node1:7:7 [0] NCCL INFO Using network Socket"
LIMIT = 20


def job(folder: Path, ranks: str, proof: str, refuse: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """A job's script around `ranks`, as rendered ones are: same helpers, same order."""
    (folder / "steps/train").mkdir(parents=True, exist_ok=True)
    rank = folder / "rank.sh"
    rank.write_text(f'exec >>"logs/train.rank0.log" 2>&1\n{ranks}\n')
    script = (
        f"set -euo pipefail; export HPC_STEP=train HPC_JOB=1 HPC_ATTEMPT=0; "
        f". {SCRIPT.with_name('identity.sh')}; . {SCRIPT}\n"
        'hpc_begin_job; hpc_fabric "$1" "$2"; hpc_start bash rank.sh'
    )
    began = time.monotonic()
    argv = ("bash", "-c", script, "bash", proof, refuse)
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=LIMIT)
    return done, time.monotonic() - began


def facts(name: str) -> tuple[str, str]:
    network = load_facts(ROOT / f"hpc_{name}/hpc_{name}").cluster.network
    return network.proof, network.refuse


def test_a_slow_network_ends_the_job_with_its_line(tmp_path: Path) -> None:
    done, seconds = job(tmp_path, f"echo '{SOCKET}'; exec sleep {LIMIT}", *facts("alps"))
    assert done.returncode == 78
    assert seconds < LIMIT / 2
    assert f"the nodes do not talk over the fast network: {SOCKET}" in done.stderr
    assert (tmp_path / "steps/train/fabric").read_text() == f"refused: {SOCKET}\n"
    end = json.loads((tmp_path / "steps/train/exit").read_text())
    assert (end["code"], end["signal"]) == (78, "")
    assert not (tmp_path / "steps/train/finished").exists()


def test_the_fabric_is_proven_and_the_training_goes_on(tmp_path: Path) -> None:
    done, _ = job(tmp_path, f"echo '{CXI}'; sleep 2; echo end", *facts("olivia"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "steps/train/fabric").read_text() == f"proven: {CXI}\n"


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
