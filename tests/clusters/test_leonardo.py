"""Leonardo: where things compile, what the debug queue holds, how ranks start."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hpc_leonardo
from hpctrain.defaults import checks
from hpctrain.errors import fatal
from hpctrain.model.job import JobState, State
from hpctrain.model.layer import How, Scope
from hpctrain.model.plan import Plan, Survey
from hpctrain.model.step import Ranks
from hpctrain.runfile.facts import load_cluster
from tests.clusters import HOMES, planned

pytestmark = pytest.mark.usefixtures("workspace")

FACTS = load_cluster(HOMES["leonardo"])
NEMOTRON = HOMES["leonardo"] / "examples/nemotron-lora.toml"
SERIAL = ("--partition=lrd_all_serial",)
CUDA = "/leonardo/prod/opt/compilers/cuda/12.6/none"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def variables(plan: Plan, step: str) -> dict[str, tuple[object, How]]:
    found = plan.step_named(step)
    assert found is not None
    return {v.name: (v.value, v.how) for v in found.around.env if v.how is not How.PREPEND}


def test_every_queue_names_its_partition() -> None:
    for queue in FACTS.queue:
        assert any(word.startswith("--partition=") for word in queue.ask["slurm"]), queue.name


@pytest.mark.parametrize("package", ["causal-conv1d", "mamba-ssm"])
def test_kernels_compile_offline_with_their_switch(package: str, home: Path) -> None:
    plan = planned(NEMOTRON, "leonardo", "ada", home)
    step = plan.step_named(f"compile-{package}")
    assert step is not None
    assert step.step.place == "compute"
    switch = f"{package.split('-')[0].upper()}_{'CONV1D_' * (package != 'mamba-ssm')}FORCE_BUILD"
    found = variables(plan, step.name)
    assert found[switch] == ("TRUE", How.SET)
    assert found["CUDA_HOME"] == (CUDA, How.SET)
    paths = [repr(v.value) for v in step.around.env if v.name == "PATH"]
    assert any(f"{CUDA}" in path for path in paths)


def test_no_step_loads_cuda_s_stub_libraries(home: Path) -> None:
    plan = planned(NEMOTRON, "leonardo", "ada", home)
    modules = [m.name for step in plan.steps for m in step.around.modules]
    assert "gcc/12.2.0" in modules
    assert not [name for name in modules if name.startswith("cuda")]
    libraries = [v for step in plan.steps for v in step.around.env if v.name == "LD_LIBRARY_PATH"]
    assert not libraries


def test_a_debug_queue_is_for_training_alone(home: Path) -> None:
    plan = planned(NEMOTRON, "leonardo", "ada", home, 'resources.queue="dbg"', 'resources.time="30m"')
    queues = {s.name: s.queue for s in plan.steps if not s.here}
    assert queues.pop("train") == "dbg"
    assert set(queues.values()) == {"serial", "prod"}


@pytest.mark.parametrize(
    ("sets", "code", "refused"),
    [
        (('resources.queue="dbg"', "resources.gpus=36", 'resources.time="30m"'), "node-limit", False),
        (('resources.queue="dbg"', 'resources.time="1h"'), "time-limit", False),
        (('resources.queue="prod"', "resources.gpus=260"), "node-limit", True),
        (('resources.queue="prod"', 'resources.time="25h"'), "time-limit", True),
        (('resources.queue="debug"',), "unknown-queue", True),
    ],
)
def test_a_weak_source_warns_and_a_sure_one_refuses(
    sets: tuple[str, ...], code: str, refused: bool, home: Path
) -> None:
    batch = "train.automodel.settings.step_scheduler.global_batch_size=720"
    plan = planned(NEMOTRON, "leonardo", "ada", home, batch, *sets)
    (found,) = [p for p in plan.problems if p.code == code]
    assert found.fatal is refused
    assert (found in fatal(plan.problems)) is refused


def test_the_two_texts_about_the_debug_queue_are_both_kept() -> None:
    new, old = FACTS.queue_named("dbg"), FACTS.queue_named("dbg-2025")
    assert new is not None
    assert old is not None
    assert new.ask == old.ask
    assert (new.max_nodes, new.jobs_per_user) == (8, 2)
    assert (old.max_nodes, old.jobs_per_user) == (2, 1)
    assert not new.sure
    assert not old.sure


def test_two_serial_jobs_fit_into_what_a_user_may_hold_there(home: Path) -> None:
    place = FACTS.place_named("serial")
    assert place is not None
    (memory,) = [word for word in place.ask["slurm"] if word.startswith("--mem=")]
    assert 2 * int(memory.removeprefix("--mem=").removesuffix("M")) <= 30800
    plan = planned(NEMOTRON, "leonardo", "ada", home)
    fetching = sum(step.queue == "serial" for step in plan.steps)
    assert fetching > 1

    def told(held: int) -> list[str]:
        queued = [JobState(id=str(n), state=State.QUEUED, queue_options=SERIAL) for n in range(held)]
        survey = Survey(is_on_cluster=True, jobs=tuple(queued))
        return [problem.code for problem in checks.check_submit(plan, survey) if problem.fatal]

    assert told(10 - fetching) == []
    assert told(11 - fetching) == ["jobs-per-user"]


def test_every_job_with_a_gpu_asks_for_memory(home: Path) -> None:
    """The site's default is small; verify imports torch and all that was built."""
    for step in planned(NEMOTRON, "leonardo", "ada", home).steps:
        launch = step.step.launch
        if launch.gpus_per_node and not step.here:
            assert launch.memory_gb == 120 * launch.gpus_per_node, step.name


def test_eurofusions_partition_is_taken_by_name(home: Path) -> None:
    plan = planned(NEMOTRON, "leonardo", "ada", home, 'resources.queue="fua"')
    assert fatal(plan.problems) == ()
    train = plan.step_named("train")
    assert train is not None
    assert train.queue == "fua"


@pytest.mark.parametrize("torchrun", [True, False])
def test_with_and_without_torchrun(torchrun: bool, home: Path) -> None:
    plan = planned(NEMOTRON, "leonardo", "ada", home, f"train.automodel.torchrun={str(torchrun).lower()}")
    step = plan.step_named("train")
    assert step is not None
    assert plan.train is not None
    assert ("torch.distributed.run" in plan.train.argv) is torchrun
    assert step.step.launch.ranks is (Ranks.PER_NODE if torchrun else Ranks.PER_GPU)
    (cores,) = [v for v in step.around.env if v.name == "SRUN_CPUS_PER_TASK"]
    assert (cores.value, cores.at) == ("32" if torchrun else "8", Scope.JOB)


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("  exitcode  : 18 (pid: 1234)", "torchrun-18"),
        ("Failed to initialize NVML: Driver/library version mismatch", "nvml-mismatch"),
        ("OSError: [Errno 28] No space left on device: '/tmp/tmpab'", "ram-tmp"),
    ],
)
def test_what_users_met_is_explained(line: str, rule: str) -> None:
    assert [r.name for r in hpc_leonardo.diagnose_rules() if re.search(r.pattern, line)] == [rule]
