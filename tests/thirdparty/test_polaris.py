"""Polaris, as a stranger wrote it, trains on a stand-in for a PBS whose queues are those of its facts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpctrain.runfile.facts import load_cluster
from tests.patience import wait_for
from tests.standin_pbs.site import queues_of
from tests.thirdparty.polaris import FACTS, Alice

DESCENT = (
    'BEGIN { srand(ENVIRON["HPC_RANK"]); for (step = 1; step <= 20; step++) { loss = 4 * 0.8 ^ step;'
    ' if (ENVIRON["HPC_RANK"] == 0) { printf "step %d loss %.4f\\n", step, loss; fflush() } }'
    ' print ENVIRON["HPC_RANK"], ENVIRON["CUDA_VISIBLE_DEVICES"], ENVIRON["NCCL_NET"],'
    ' ENVIRON["https_proxy"] }'
)
"""A descent that every rank walks and the first one tells of; then what each rank was given."""
PROGRAM = json.dumps(["awk", DESCENT])
RUN = f"""\
name    = "descent"
cluster = "polaris"

[resources]
nodes = 2
time  = "10m"

[environment]
use = ""

[train]
use = "command"

[train.command]
argv    = {PROGRAM}
ranks   = "per_gpu"
metrics = 'step (?P<step>\\d+) loss (?P<loss>[\\d.]+)'
"""


@pytest.fixture
def alice(on_polaris: Alice) -> Alice:
    """With a run file of her own."""
    (on_polaris.folder / "run.toml").write_text(RUN)
    return on_polaris


def test_a_run_trains_on_two_nodes_of_its_queue(alice: Alice) -> None:
    alice("submit", "run.toml", "--account", "datascience")
    found: dict[str, Any] = {}

    def over() -> bool:
        found.update(alice.json("status", "descent"))
        return found["state"] in ("done", "failed", "cancelled", "unknown")

    wait_for("the end", over, 90)
    logs = "".join(path.read_text() for path in Path(found["path"]).glob("logs/*"))
    assert found["state"] == "done", logs
    (job,) = alice.standin.jobs.values()
    assert job["Resource_List"]["select"] == "2:ncpus=64:mpiprocs=4:system=polaris"
    assert (job["queue"], job["Resource_List"]["filesystems"]) == ("debug-scaling", "home:eagle")
    assert job["Account_Name"] == "datascience"
    last = alice.json("metrics", "descent")["rows"][-1]
    assert (last["step"], last["loss"]) == (20, 0.0461)
    texts = [(Path(found["path"]) / f"logs/train.rank{rank}.log").read_text() for rank in range(8)]
    ranks = [text.splitlines()[-1] for text in texts]
    proxy = "http://proxy.alcf.anl.gov:3128"
    assert ranks == [f"{rank} 3,2,1,0 AWS Libfabric {proxy}" for rank in range(8)]


def test_what_its_queues_refuse_is_refused_before_qsub(alice: Alice) -> None:
    ask = ("submit", "run.toml", "--account", "datascience")
    assert "error[time-limit]" in alice(*ask, "--set", "resources.time=2h", code=2)
    assert "--set resources.time=5m" in alice(*ask, "--set", "resources.time=1m", code=2)
    assert not alice.standin.jobs


def test_a_second_job_of_a_user_in_debug_scaling_is_refused(alice: Alice) -> None:
    text = (alice.folder / "run.toml").read_text()
    (alice.folder / "run.toml").write_text(text.replace(PROGRAM, json.dumps(["sleep", "300"])))
    alice("submit", "run.toml", "--account", "datascience")
    refused = alice("submit", "run.toml", "--account", "datascience", code=2)
    assert "error[jobs-per-user]" in refused
    assert len(alice.standin.jobs) == 1


def test_the_stand_in_keeps_the_limits_of_the_facts() -> None:
    assert queues_of(load_cluster(FACTS)) == {
        "prod": {"nodect": 496, "walltime": 24 * 3600},
        "debug-scaling": {"nodect": 10, "walltime": 3600, "max_queued": 1},
        "debug": {"nodect": 2, "walltime": 3600},
        "preemptable": {"nodect": 10, "walltime": 72 * 3600},
        "capacity": {"nodect": 4, "walltime": 168 * 3600, "max_queued": 2},
    }
