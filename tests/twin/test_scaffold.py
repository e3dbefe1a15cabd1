"""What the Slurm of a twin prints is read back as the facts that the twin was made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain.cli.init import printed_facts
from hpctrain.runfile.facts import load_cluster
from tests.twin.fixtures import Start
from tests.twin.slurmconf import rows

pytestmark = [pytest.mark.twin]
PROGRAMS = {
    "sinfo": "sinfo",
    "partitions": "scontrol show partition",
    "nodes": "scontrol show node",
    "config": "scontrol show config",
    "modules": "module -t avail 2>&1",
    "cores": "lscpu",
}


@pytest.mark.parametrize("name", ["frontier", "leonardo", "perlmutter"])
def test_facts_are_read_back_from_a_real_slurm(name: str, twin: Start, tmp_path: Path) -> None:
    one, (source, folder) = twin(name), (tmp_path / "outputs", tmp_path / "hpc_read")
    for path in (source, folder):
        path.mkdir()
    for file, line in PROGRAMS.items():
        (source / file).write_text(one.sh(line))
    (folder / "cluster.toml").write_text(printed_facts.cluster_toml("read", printed_facts.read([source])))
    read, facts = load_cluster(folder), one.site.cluster
    times: dict[str, float] = {}
    for row in rows(one.site):
        if row.queue.max_time:
            times[row.partition] = max(times.get(row.partition, 0), row.queue.max_time.minutes)
    assert {q.name: q.max_time.minutes for q in read.queue if q.max_time} == times
    kinds = ("cores_per_node", "gpus_per_node")
    assert [getattr(read.hardware, kind) for kind in kinds] == [
        getattr(facts.hardware, kind) for kind in kinds
    ]
    assert abs(read.hardware.memory_gb - facts.hardware.memory_gb) <= 1
    assert (read.arch, read.title, read.scheduler) == ("x86_64", name, "slurm")
