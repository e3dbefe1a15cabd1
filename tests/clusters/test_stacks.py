"""Network stacks that are known to go wrong, met by plans on our clusters: warned of or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain.errors import Problem
from tests.clusters import EXAMPLES, HOMES, planned

pytestmark = pytest.mark.usefixtures("workspace")

FIRST = {name: min(p for p in EXAMPLES if f"hpc_{name}/" in str(p)) for name in HOMES}
NEOX = HOMES["isambard"] / "examples/neox-pretrain.toml"


def told(name: str, home: Path, *sets: str, path: Path | None = None, site: str = "") -> dict[str, Problem]:
    """Name of the row -> what a plan on two nodes says of it."""
    plan = planned(path or FIRST[name], name, "ada", home, "resources.nodes=2", *sets, site=site)
    found = [problem for problem in plan.problems if problem.code == "known-stack"]
    return {problem.message.partition(":")[0]: problem for problem in found}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parts[-4]}-{path.stem}")
def test_no_example_of_ours_meets_one(path: Path, tmp_path: Path) -> None:
    name = path.parts[-4].removeprefix("hpc_")
    plan = planned(path, name, "ada", tmp_path)
    assert [p.message for p in plan.problems if p.code == "known-stack"] == []


@pytest.mark.parametrize(
    ("name", "settings", "rows", "is_fatal"),
    [
        ("isambard", ['env.NCCL_NET="OFI"'], {"plugin-name"}, True),
        ("isambard", ['env.NCCL_PROTO="LL128"'], {"ll128-asked", "ll128-gdrcopy"}, True),
        ("isambard", ['env.NCCL_PROTO="^LL"'], {"ll128-left-on", "ll128-gdrcopy"}, True),
        ("isambard", ['env.FI_MR_CACHE_MONITOR="memhooks"'], {"memhooks"}, False),
        ("isambard", ['env.FI_CXI_DEFAULT_TX_SIZE="16384"'], {"tx-credits"}, False),
        ("olivia", ['env.FI_PROVIDER="tcp"'], {"provider-tcp"}, True),
        ("olivia", ['env.FI_CXI_RDZV_EAGER_SIZE="2048"'], {"eager-messages"}, False),
        ("frontier", ['env.NCCL_NET_GDR_LEVEL="SYS"'], set(), False),
        ("frontier", ['env.NCCL_NET="Socket"'], {"socket-asked"}, False),
        ("frontier", ['env.FI_CXI_RX_MATCH_MODE="hardware"'], {"match-in-hardware"}, False),
        ("leonardo", ['env.NCCL_IB_DISABLE="1"'], {"infiniband-off"}, False),
    ],
)
def test_a_setting_of_the_user(
    name: str, settings: list[str], rows: set[str], is_fatal: bool, tmp_path: Path
) -> None:
    found = told(name, tmp_path, *settings)
    assert set(found) == rows
    assert any(problem.fatal for problem in found.values()) is is_fatal
    for problem in found.values():
        assert problem.where == settings[0].partition("=")[0]
        assert problem.hint
        assert "https://" in problem.notes[-1]


@pytest.mark.parametrize(
    ("nodes", "settings", "is_met"),
    [
        (2, "moe_num_experts=8", True),
        (1, "moe_num_experts=8", False),
        (2, "moe_num_experts=1", False),
        (2, "seed=8", False),
    ],
)
def test_experts_over_nodes_are_told_of_the_plugin_s_hang(
    nodes: int, settings: str, is_met: bool, tmp_path: Path
) -> None:
    sets = (f"resources.nodes={nodes}", f"train.neox.settings.{settings}")
    found = told("isambard", tmp_path, *sets, path=NEOX)
    assert ("plugin-all-to-all" in found) is is_met
    if is_met:
        problem = found["plugin-all-to-all"]
        assert not problem.fatal
        assert "1.8.1" in problem.message
        assert "1.17" in problem.hint
        assert problem.notes[0] == "met with plugin 1.8.1, libfabric 1.22.0-SHS12.0.2"


def test_a_newer_plugin_of_the_site_is_not_told(tmp_path: Path) -> None:
    site = '[network.stack]\nplugin = "1.18.0"\nlibfabric = "2.3.1"\n'
    sets = ("train.neox.settings.moe_num_experts=8",)
    assert told("isambard", tmp_path, *sets, path=NEOX, site=site) == {}


def test_a_site_that_knows_better_says_so_under_the_same_name(tmp_path: Path) -> None:
    row = '[[network.precedent]]\nname = "memhooks"\nverdict = "good"\neffect = "ok"\nsource = "brics-nccl"\n'
    settings = 'env.FI_MR_CACHE_MONITOR="memhooks"'
    assert set(told("isambard", tmp_path, settings)) == {"memhooks"}
    assert told("isambard", tmp_path, settings, site=row) == {}


def test_a_site_adds_rows_of_its_own(tmp_path: Path) -> None:
    row = """
[[network.precedent]]
name = "rings"
verdict = "refused"
stack = { libfabric = ">=1.20,<2" }
var = { NCCL_CROSS_NIC = "1" }
effect = "a ring over two adapters is slow"
cure = 'NCCL_CROSS_NIC = "0"'
source = "brics-nccl"
"""
    problem = told("isambard", tmp_path, site=row)["rings"]
    assert problem.fatal
    assert problem.hint == 'NCCL_CROSS_NIC = "0"'
    assert problem.notes[0] == "met with libfabric 1.22.0-SHS12.0.2, NCCL_CROSS_NIC=1"
