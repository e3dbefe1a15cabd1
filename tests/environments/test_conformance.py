"""Every environment that we ship holds what the kit asks of anybody's; prefixes on a cluster too."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from hpctrain.model.step import Need
from hpctrain.testing import EnvironmentConformance
from hpctrain.testing.plans import PlanChecks
from hpctrain.testing.purity import PurityChecks
from hpctrain.testing.scripts import ScriptChecks
from hpctrain.testing.subject import Subject
from hpctrain.testing.twice import TwiceChecks

RUNS = Path(__file__).with_name("runs")


class TechnologyChecks(PlanChecks, PurityChecks, TwiceChecks, ScriptChecks):
    """What the kit asks of every plan, and where the steps of a prefix lie."""

    def test_the_network_is_asked_where_it_is(self, subject: Subject, example: Path) -> None:
        plan = subject.plan(example)
        for planned in plan.steps:
            step = planned.step
            provides = subject.facts.place_named(step.place)
            assert provides is not None
            if step.name in ("wheels", "sources"):
                assert step.needs == {Need.NETWORK}
            if step.name.startswith("compile-"):
                assert Need.NETWORK not in step.needs
                modules = subject.facts.modules
                assert modules is not None
                assert len(planned.around.modules) >= len(modules.build)
        assert {"wheels", "sources", "env", "verify"} <= {s.name for s in plan.steps}


class TestCondaOnFrontier(TechnologyChecks):
    cluster = "frontier"
    examples = (str(RUNS / "frontier.toml"),)
    account = "CFD204"

    def test_its_archive_is_unpacked_by_training(self, subject: Subject, example: Path) -> None:
        train = subject.plan(example).step_named("train")
        assert train is not None
        assert train.around.node
        assert "unpack.sh" in subject.scripts(example)["steps/train/node.sh"]


class TestUvOnIsambard(TechnologyChecks):
    cluster = "isambard"
    examples = (str(RUNS / "isambard.toml"),)

    def test_what_asks_a_gpu_is_built_on_one(self, subject: Subject, example: Path) -> None:
        steps = {s.name: s.step for s in subject.plan(example).steps}
        assert Need.GPU in steps["compile-flash-attn"].needs
        assert Need.GPU not in steps["compile-transformer-engine-torch"].needs


class TestVenvOnLeonardo(TechnologyChecks):
    cluster = "leonardo"
    examples = (str(RUNS / "leonardo.toml"),)
    account = "CNHPC_1905882"

    def test_builds_follow_what_they_are_built_against(self, subject: Subject, example: Path) -> None:
        steps = {s.name: s.step for s in subject.plan(example).steps}
        assert "compile-causal-conv1d" in [a.step for a in steps["compile-mamba-ssm"].after]
        task = subject.scripts(example)["steps/compile-mamba-ssm/task.sh"]
        assert 'CPATH="${WORK}"/.build/include' in task


class TestVenv(EnvironmentConformance):
    environment, sets = "venv", ('environment.python="3.11"', 'environment.packages=["numpy==2.0"]')


class TestUv(EnvironmentConformance):
    environment, sets = "uv", ('environment.python="3.11"', 'environment.packages=["numpy==2.0"]')


class TestConda(EnvironmentConformance):
    environment, sets = "conda", ('environment.python="3.11"',)
    options: ClassVar = {"activate": True}


class TestPrefix(EnvironmentConformance):
    environment = "ready"
    options: ClassVar = {"prefix": "{folder}/a prefix"}


class TestImage(EnvironmentConformance):
    environment = "ready"
    options: ClassVar = {"image": "/project/image.sif"}


class TestApptainer(EnvironmentConformance):
    environment = "apptainer"
    options: ClassVar = {"image": "nvcr.io/nvidia/pytorch:25.06-py3"}


class TestEdf(EnvironmentConformance):
    environment, cluster = "edf", "alps"
    options: ClassVar = {"base": "nvcr.io/nvidia/pytorch:25.01-py3"}
