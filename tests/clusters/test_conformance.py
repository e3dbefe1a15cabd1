"""Every cluster that we ship holds what the kit asks of anybody's."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from hpctrain.testing import ClusterConformance

GOLDEN = Path(__file__).parents[1] / "golden"


class TestAlps(ClusterConformance):
    cluster, golden, goldens = "alps", GOLDEN, ("nanotron-wikitext", "lora-apart")


class TestFrontier(ClusterConformance):
    cluster, golden, goldens = "frontier", GOLDEN, ("lora-2x8", "tutorial")


class TestIsambard(ClusterConformance):
    cluster, golden, goldens = "isambard", GOLDEN, ("two-nodes",)


class TestLeonardo(ClusterConformance):
    cluster, golden, goldens = "leonardo", GOLDEN, ("lora-4gpu",)


class TestLocal(ClusterConformance):
    cluster, golden = "local", GOLDEN
    examples = ("demo/run.toml",)
    without: ClassVar = {
        "the_readme_shows_every_example": "the demo is a command, `hpctrain demo`, and shows itself"
    }


class TestOlivia(ClusterConformance):
    cluster, golden, goldens = "olivia", GOLDEN, ("sft-4gpu", "sft-2nodes")
