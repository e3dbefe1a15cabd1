"""Clariden and Olivia: memory that may be asked for, words that are refused, what users met."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hpc_alps
from hpctrain.errors import Problem
from hpctrain.runfile.facts import load_cluster
from tests.clusters import HOMES, planned

pytestmark = pytest.mark.usefixtures("workspace")

RUNS = {
    "alps": HOMES["alps"] / "examples/lora-apart.toml",
    "olivia": HOMES["olivia"] / "examples/sft-4gpu.toml",
}


def about_memory(name: str, home: Path, *sets: str) -> list[Problem]:
    plan = planned(RUNS[name], name, "ada", home, *sets)
    return [problem for problem in plan.problems if problem.code == "memory-limit"]


@pytest.mark.parametrize(
    ("name", "asked", "refused"),
    [
        ("olivia", 700, False),
        ("olivia", 808, False),
        ("olivia", 809, True),
        ("alps", 830, False),
        ("alps", 831, True),
    ],
)
def test_what_a_node_gives_is_asked_for_and_no_more(
    name: str, asked: int, refused: bool, tmp_path: Path
) -> None:
    """The site's own script asks 700G on Olivia; Clariden's limit is 850000 MB, what 830G are below."""
    assert bool(about_memory(name, tmp_path, f"resources.memory_gb={asked}")) is refused
    assert load_cluster(HOMES["alps"]).facts["memory"]["most_mb"] >= 830 * 1024


@pytest.mark.parametrize("word", ["--mem=0", "--mem 0"])
def test_all_memory_of_a_node_is_refused_on_clariden_alone(word: str, tmp_path: Path) -> None:
    (problem,) = about_memory("alps", tmp_path, f'resources.ask.slurm=["{word}"]')
    assert problem.fatal
    assert problem.where == "resources.ask.slurm[0]"
    assert "memory_gb = 450" in problem.hint
    assert about_memory("olivia", tmp_path, f'resources.ask.slurm=["{word}"]') == []
    assert about_memory("alps", tmp_path, 'resources.ask.slurm=["--mem=450G"]') == []


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("alps", "clariden-ln004"),
        ("olivia", "uan01.olivia.sigma2.no"),
        ("isambard", "login40.ai-p2.isambard.ac.uk"),
        ("leonardo", "login02.leonardo.local"),
    ],
)
def test_a_login_node_is_known_by_its_name(name: str, host: str) -> None:
    assert any(re.search(pattern, host) for pattern in load_cluster(HOMES[name]).detect)


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("slurmstepd: error: pyxis: couldn't start container", "engine-start"),
        (
            "spank: required plugin spank_pyxis.so: task_init() failed with rc=-1",
            "engine-start",
        ),
        ("libcudart.so could not be found", "engine-old-image"),
    ],
)
def test_what_users_of_clariden_met_is_explained(line: str, rule: str) -> None:
    assert [r.name for r in hpc_alps.diagnose_rules() if re.search(r.pattern, line)] == [rule]
