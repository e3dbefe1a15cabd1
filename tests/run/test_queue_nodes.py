"""A queue whose nodes are not those of `[hardware]`: the plan reckons with the ones that the run gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain import Session
from hpctrain.errors import ConfigError

RUN = """\
name = "hello"
cluster = "leonardo"
[environment]
use = ""
[resources]
nodes = 1
time = "1h"
account = "IscrC_hello"
queue = "{queue}"
[train.command]
argv = ["true"]
"""
SITE = """\
[[queue]]
name = "fat"
source = "told"
auto = false
ask = { slurm = ["--partition=boost_fat"] }
hardware = { gpu = "A100 80GB", gpu_memory_gb = 80, gpus_per_node = 2, cores_per_node = 16, nodes = 8 }

[[source]]
id = "told"
title = "told by the help desk"
checked = "2026-11-20"
sure = "inferred"
"""


def session(folder: Path, queue: str, site: str = SITE) -> Session:
    (folder / "site.toml").write_text(site)
    (folder / "run.toml").write_text(RUN.format(queue=queue))
    environ = {"HOME": str(folder), "USER": "ada", "HPCTRAIN_SITE": str(folder / "site.toml")}
    return Session(folder / "run.toml", environ=environ)


def test_the_nodes_are_those_of_the_queue(tmp_path: Path) -> None:
    usual, fat = session(tmp_path, ""), session(tmp_path, "fat")
    assert usual.cluster.hardware.gpus_per_node == 4
    hardware = fat.cluster.hardware
    assert (hardware.gpu, hardware.gpu_memory_gb, hardware.nodes) == ("A100 80GB", 80, 8)
    assert hardware.peak_tflops == usual.cluster.hardware.peak_tflops  # what is left out is as there
    step = fat.plan().step_named("train")
    assert step is not None
    assert step.step.launch.gpus_per_node == 2


def test_its_number_of_nodes_is_a_limit(tmp_path: Path) -> None:
    fat = session(tmp_path, "fat")
    made = Session(tmp_path / "run.toml", environ=fat.environ, sets=["resources.nodes=9"]).plan()
    assert [p.hint for p in made.problems if p.code == "node-limit"] == ["nodes = 8"]


def test_nodes_that_are_held_wait_in_no_queue(tmp_path: Path) -> None:
    site = SITE.replace("auto = false", 'auto = false\nforbids = ["batch"]')
    held = session(tmp_path, "fat", site)
    assert [p.code for p in held.plan().problems] == ["queue-forbids"]
    inside = held.on_node()
    assert inside.plan().problems == ()
    assert inside.cluster.hardware.gpus_per_node == 2


def test_a_misspelt_word_of_a_row_has_its_line(tmp_path: Path) -> None:
    site = SITE.replace("gpu_memory_gb", "gpu_memory").replace("auto = false", 'forbids = ["bach"]')
    with pytest.raises(ConfigError) as caught:
        session(tmp_path, "fat", site)
    told = {problem.code: problem for problem in caught.value.problems}
    assert told["unknown-key"].span is not None
    assert told["unknown-key"].span.line == 6
    assert told["unknown-key"].hint.startswith("gpu_memory_gb")
    assert "batch" in told["wrong-value"].message
