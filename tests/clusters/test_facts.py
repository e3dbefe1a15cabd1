"""What the facts of every cluster must be beyond what their loader refuses: dated, complete, usable."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hpctrain.errors import ConfigError
from hpctrain.model.cluster import Cluster
from hpctrain.model.layer import Module
from hpctrain.model.step import Need
from hpctrain.runfile.facts import load_cluster
from hpctrain.versions import HOOK_API
from tests.clusters import EXAMPLES, HOMES, read

ROLES = {
    *("home", "state", "env", "images", "assets"),
    *("data", "checkpoints", "runs", "nodelocal"),
}
TEMPLATE = re.compile(r"(\{(user|account|uid)\}|\$\{[A-Z_]+\}|[A-Za-z0-9_./-])+")

PROOFS = {
    "slingshot": [
        "NCCL INFO NET/OFI Selected Provider is cxi (found 4 nics)",
        "NCCL INFO NET/OFI Selected provider is cxi, fabric is cxi (found 4 nics)",
    ],
    "infiniband": ["NCCL INFO Using network IB"],
}
REFUSALS = {
    "slingshot": [
        "NCCL INFO Using network Socket",
        "NCCL INFO NET/OFI Selected provider is tcp;ofi_rxm, fabric is tcp (found 1 nics)",
        "NCCL WARN NET/OFI No eligible providers were found",
        "net.cc:626 NCCL WARN Error: network AWS Libfabric not found.",
        "NET/Plugin: Could not find: ofi libnccl-net-ofi.so. Using internal network plugin.",
    ],
    "infiniband": ["NCCL INFO Using network Socket", "NCCL INFO NET/IB : No device found."],
}


@pytest.fixture(params=sorted(HOMES))
def cluster(request: pytest.FixtureRequest) -> Cluster:
    return load_cluster(HOMES[request.param])


def test_every_cluster_is_seen() -> None:
    assert set(HOMES) == {"olivia", "alps", "frontier", "isambard", "leonardo"}


@pytest.mark.parametrize("name", sorted(HOMES))
def test_the_name_is_the_folder(name: str) -> None:
    assert load_cluster(HOMES[name]).name == name


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("max_node_minutes = 90", "max_node_minuts = 90"),
        ('source = "cscs-slurm"', 'source = "nowhere"'),
        ('max_time = "12h"', 'max_time = "12"'),
        (', why = "GPU-aware MPI beside NCCL deadlocks"', ""),
    ],
)
def test_a_wrong_fact_is_refused(good: str, bad: str, tmp_path: Path) -> None:
    text = (HOMES["alps"] / "cluster.toml").read_text(encoding="utf-8")
    assert text.count(good) == 1
    (tmp_path / "cluster.toml").write_text(text.replace(good, bad), encoding="utf-8")
    with pytest.raises(ConfigError):
        load_cluster(tmp_path)


def test_sources_are_dated(cluster: Cluster) -> None:
    idents = [source.id for source in cluster.source]
    assert len(idents) == len(set(idents))
    for source in cluster.source:
        day = datetime.date.fromisoformat(source.checked)
        assert day <= datetime.datetime.now(tz=datetime.timezone.utc).date()


def test_free_facts_name_their_source_too(cluster: Cluster) -> None:
    named = {at: table["source"] for at, table in _free(cluster.facts) if "source" in table}
    assert ".facts" in named
    assert [at for at, source in named.items() if cluster.source_of(source) is None] == []


def _free(table: Mapping[str, Any], at: str = ".facts") -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield at, table
    for name, below in table.items():
        if isinstance(below, dict):
            yield from _free(below, f"{at}.{name}")


def test_places(cluster: Cluster) -> None:
    login, *others = cluster.place
    assert login.here
    assert not any(place.here for place in others)
    offers = [set(place.provides) for place in cluster.place]
    assert Need.NETWORK in offers[0]
    assert any(offer >= {Need.GPU, Need.TARGET} for offer in offers)
    assert any(offer >= {Need.NETWORK, Need.TARGET} for offer in offers)
    for place in cluster.place:
        assert place.why or not place.env, f"{place.name} sets variables: why?"
        assert place.gpus <= cluster.hardware.gpus_per_node
    assert {p.arch for p in cluster.place if Need.TARGET in p.provides} == {cluster.arch}


def test_queues(cluster: Cluster) -> None:
    names = [queue.name for queue in cluster.queue]
    assert len(names) == len(set(names))
    assert any(queue.auto for queue in cluster.queue)
    for queue in cluster.queue:
        assert queue.max_time is not None
        assert queue.min_nodes <= (queue.max_nodes or cluster.hardware.nodes)
        assert set(queue.forbids) <= {"chain", "production", "multi_node"}


def test_the_bins_of_frontier_leave_no_gap() -> None:
    queues = load_cluster(HOMES["frontier"]).queue
    bins = [(q.min_nodes, q.max_nodes or 0) for q in queues if q.name.startswith("batch")]
    assert len(bins) == 5
    assert [low for low, _ in bins] == [1, *(high + 1 for _, high in bins[:-1])]


def test_storage(cluster: Cluster) -> None:
    assert set(cluster.storage) - {"logs"} == ROLES
    for role, storage in cluster.storage.items():
        assert TEMPLATE.fullmatch(storage.path), role
        assert storage.path.startswith(("/", "${"))
        assert storage.node_local == (role == "nodelocal")
    assert cluster.storage["state"].share == "me", "tokens are nobody else's"


def test_every_network_variable_has_a_reason(cluster: Cluster) -> None:
    names = [variable.name for variable in cluster.network.var]
    assert len(names) == len(set(names))
    assert all(variable.why.strip() for variable in cluster.network.var)


def test_nccl_net_is_for_several_nodes_only(cluster: Cluster) -> None:
    (net,) = [variable for variable in cluster.network.var if variable.name == "NCCL_NET"]
    assert net.nodes == "many"


def test_a_log_proves_or_refuses_the_fabric(cluster: Cluster) -> None:
    proof, refuse = re.compile(cluster.network.proof), re.compile(cluster.network.refuse)
    for line in PROOFS[cluster.network.fabric]:
        assert proof.search(line)
        assert not refuse.search(line)
    for line in REFUSALS[cluster.network.fabric]:
        assert refuse.search(line)
        assert not proof.search(line)


def test_modules_can_be_read(cluster: Cluster) -> None:
    own = cluster.modules
    lines = (*cluster.network.modules, *(own.build + own.run if own else ()))
    for line in lines:
        module = Module.parse(line)
        assert module.action in Module.ACTIONS
        assert module.name or line in ("reset", "purge")


def test_weak_facts_can_be_verified(cluster: Cluster) -> None:
    assert len(cluster.verify) >= 3
    for verify in cluster.verify:
        assert verify.command.strip()
        re.compile(verify.expect)


@pytest.mark.parametrize("name", sorted(HOMES))
def test_no_scheduler_variable_among_the_facts(name: str) -> None:
    text = (HOMES[name] / "cluster.toml").read_text(encoding="utf-8")
    assert not re.search(r"SLURM_|PBS_|#SBATCH", text)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: f"{p.parent.parent.name}/{p.name}")
def test_the_readme_shows_every_example_as_it_is(path: Path) -> None:
    readme = path.parents[2] / "README.md"
    assert path.read_text(encoding="utf-8").strip() in readme.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(HOMES))
def test_a_cluster_is_a_distribution(name: str) -> None:
    project = read(HOMES[name].parent / "pyproject.toml")["project"]
    assert project["name"] == f"hpctrain-{name}"
    assert project["entry-points"] == {"hpctrain.clusters": {name: f"hpc_{name}"}}
    code = (HOMES[name] / "__init__.py").read_text(encoding="utf-8")
    assert f"HPCTRAIN_API = {HOOK_API}\n" in code
