"""Isambard: which NCCL is loaded, where it is preloaded, and what is refused."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

import hpc_isambard
from hpc_isambard import temporary
from hpctrain.errors import Problem
from hpctrain.model.job import JobState, State
from hpctrain.model.layer import EnvVar, Scope
from hpctrain.model.plan import Plan
from hpctrain.model.words import Loc
from hpctrain.plan.explain import explain
from hpctrain.run.prepare.editor import tunnel_name
from hpctrain.run.steps.poll import Poll
from hpctrain.runfile.facts import load_cluster
from hpctrain.session import Session
from tests.clusters import HOMES, planned

pytestmark = pytest.mark.usefixtures("workspace")

FACTS = load_cluster(HOMES["isambard"])
NEOX = HOMES["isambard"] / "examples/neox-pretrain.toml"
TWO = HOMES["isambard"] / "examples/two-nodes.toml"
SYSTEM = "/tools/brics/apps/nccl/2.26.6-1/lib/libnccl.so.2"
MODULES = ('environment.use="ready"', 'environment.ready.prefix=""')


def plan_of(home: Path, *sets: str, path: Path = TWO, site: str = "") -> Plan:
    return planned(path, "isambard", "ada", home, *sets, site=site)


def preloads(plan: Plan, step: str = "train") -> list[EnvVar]:
    found = plan.step_named(step)
    assert found is not None
    return [v for v in found.around.env if v.name == "LD_PRELOAD"]


def coded(plan: Plan, *codes: str) -> list[Problem]:
    return [p for p in plan.problems if p.code in codes]


def test_the_environment_s_own_is_preloaded_in_tasks_alone(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, path=NEOX)
    for step in ("train", "verify"):
        (own,) = preloads(plan, step)
        assert own.at is Scope.TASK
        assert isinstance(own.value, Loc)
        assert own.value.path.endswith("/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2")
        assert "torch 2.10.0 was built with NCCL 2.27.5" in own.why
    (entry,) = [e for e in explain(plan, "LD_PRELOAD") if e["step"] == "train"]
    (said,) = entry["in_force"]
    assert said["source"] == "isambard"
    assert said["fact"]["checked"] == "2026-11-20"


def test_nothing_is_preloaded_where_it_builds(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, path=NEOX)
    for step in plan.steps:
        if step.name.startswith("compile-"):
            assert [v.how.value for v in preloads(plan, step.name)] == ["unset"]
            assert not [m for m in step.around.modules if m.name.startswith("brics/nccl")]
            assert step.step.place == "compute"


def test_what_compiles_in_the_environment_finds_the_document_s_compilers(tmp_path: Path) -> None:
    """The same as the builds of the environment: two copies of these facts, one for each kind of step."""
    plan = plan_of(tmp_path, path=NEOX)
    built = plan.run.environment.options.env
    for name in ("verify", "neox-compile", "train"):
        step = plan.step_named(name)
        assert step is not None
        env = {var.name: var.value for var in step.around.env}
        for variable in ("CC", "CXX", "CUDAHOSTCXX", "TORCH_CUDA_ARCH_LIST"):
            assert env[variable] == built[variable]
    with_gcc = plan_of(tmp_path, 'env={CC="/usr/bin/gcc-14"}', path=NEOX)
    assert not coded(with_gcc, "conflict")
    for name in ("neox-compile", "train"):
        step = with_gcc.step_named(name)
        assert step is not None
        assert [var.value for var in step.around.env if var.name == "CC"] == ["/usr/bin/gcc-14"]


def test_the_example_names_all_that_neox_starts_with(tmp_path: Path) -> None:
    """Its own pins may be of other versions; none of the closure is left to chance."""
    from hpctrain_plugins.environments.wheels.packages_spec import normal
    from hpctrain_plugins.trainers.neox.closure import PACKAGES

    environment = plan_of(tmp_path, path=NEOX).run.environment
    named = {normal(p.name) for p in (*environment.packages, *environment.compile)}
    assert {*PACKAGES.values(), "pybind11"} <= named


def test_it_is_proven_in_the_job(tmp_path: Path) -> None:
    step = plan_of(tmp_path, path=NEOX).step_named("verify")
    assert step is not None
    assert "--symbol=ncclCommShrink" in repr(step.step.commands[-1])
    assert "--nccl=2.27.5" in repr(step.step.commands[-1])


@pytest.mark.parametrize(
    ("torch", "library", "refused"),
    [
        ("2.10.0", SYSTEM, True),
        ("2.13.0", SYSTEM, True),
        ("2.7.1", SYSTEM, False),
        ("2.10.0", "/my/libnccl.so", False),
    ],
)
def test_a_preload_that_is_too_old_is_refused(
    torch: str, library: str, refused: bool, tmp_path: Path
) -> None:
    plan = plan_of(tmp_path, f'environment.packages=["torch=={torch}"]', f'env.LD_PRELOAD="{library}"')
    found = coded(plan, "nccl-too-old")
    assert bool(found) is refused
    if found:
        assert found[0].fatal
        assert f"2.26.6, which lacks ncclCommShrink; torch {torch} needs 2.27.5" in found[0].message
        assert "the environment's own NCCL is preloaded" in found[0].hint


def test_a_relative_preload_is_refused(tmp_path: Path) -> None:
    (found,) = coded(plan_of(tmp_path, 'env.LD_PRELOAD=".venv/lib/libnccl.so.2"'), "preload-relative")
    assert found.fatal


def test_a_module_s_is_taken_where_there_is_no_other_and_it_is_new_enough(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path, *MODULES, 'environment.ready.modules=["my/torch"]', 'environment.packages=["torch==2.7.1"]'
    )
    (own,) = preloads(plan)
    assert "brics/nccl/2.26.6-1 is as new" in own.why
    train = plan.step_named("train")
    assert train is not None
    assert "brics/nccl/2.26.6-1" in [m.name for m in train.around.modules]


def test_a_module_s_that_is_too_old_is_refused(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, *MODULES, 'environment.ready.modules=["brics/nccl/2.26.6-1"]')
    (found,) = coded(plan, "nccl-too-old")
    assert "the module brics/nccl/2.26.6 is NCCL 2.26.6, which lacks ncclCommShrink" in found.message


def test_no_nccl_is_loaded_while_building(tmp_path: Path) -> None:
    site = '[modules]\nsource = "geodesic"\nbuild = ["reset", "cuda/12.6", "brics/nccl/2.26.6-1"]\n'
    found = coded(plan_of(tmp_path, path=NEOX, site=site), "nccl-in-build")
    assert found
    assert "brics/nccl/2.26.6-1 is loaded while compile-flash-attn builds" in found[0].message


def test_the_cap_of_a_project_is_a_setting_of_its_site(tmp_path: Path) -> None:
    assert coded(plan_of(tmp_path, "resources.nodes=64"), "gpu-limit")
    raised = '[policy]\nsource = "brics-jobs"\nmax_gpus = 256\n'
    assert not coded(plan_of(tmp_path, "resources.nodes=64", site=raised), "gpu-limit")


def test_every_job_asks_for_a_gpu(tmp_path: Path) -> None:
    jobs = [s for s in plan_of(tmp_path, path=NEOX).steps if not s.here]
    assert len(jobs) > 5
    assert [s.name for s in jobs if not s.step.launch.gpus_per_node] == []
    assert FACTS.policy.poll_seconds == 60
    assert FACTS.facts["tunnel"] == {"source": "geodesic", "gpus": 4, "time": "24h"}


def test_the_log_has_the_document_s_name_and_caches_are_the_node_s(tmp_path: Path) -> None:
    train = plan_of(tmp_path, path=NEOX).step_named("train")
    assert train is not None
    words = " ".join(map(repr, shown(train.around.job))).replace("'", "")
    assert "ln -sfn train.log logs/neox-pretrain-" in words
    (cache,) = [v for v in train.around.env if v.name == "TRITON_CACHE_DIR"]
    assert cache.at is Scope.NODE
    assert "USER" in repr(cache.value)


def shown(lines: Iterable[object]) -> list[object]:
    """The words of commands, one after the other."""
    return [getattr(word, "parts", (word,))[0] for line in lines for word in getattr(line, "argv", ())]


def test_a_version_that_the_run_names_goes_before_the_cluster_s(tmp_path: Path) -> None:
    (own,) = preloads(plan_of(tmp_path, 'environment.packages=["torch==2.7.1"]'))
    assert "torch 2.7.1 was built with NCCL 2.26.2" in own.why


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("ImportError: libtorch_cuda.so: undefined symbol: ncclCommShrink", "nccl-symbol"),
        (
            "ERROR: ld.so: object '.venv/x.so' from LD_PRELOAD cannot be preloaded (no such file)",
            "preload-ignored",
        ),
        ("ValueError: invalid literal for int() with base 10: '90a'", "cuda-arch-90a"),
        ("OSError: [Errno 116] Stale file handle", "stale-cache"),
        ("PermissionError: [Errno 13] Permission denied: '/local/user/1483806040'", "tmpdir-gone"),
        (
            "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLTOALL, N=8)",
            "experts-hang",
        ),
    ],
)
def test_what_users_met_is_explained(line: str, rule: str) -> None:
    assert [r.name for r in hpc_isambard.diagnose_rules() if re.search(r.pattern, line)] == [rule]


def test_a_cap_s_refusal_says_who_raises_it_and_where_it_is_written(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "resources.nodes=16")
    (limit,) = coded(plan, "gpu-limit")
    assert limit.fatal
    (way_out,) = coded(plan, "gpu-cap")
    assert not way_out.fatal
    assert "https://support.isambard.ac.uk" in way_out.notes[0]
    assert "/etc/hpctrain/isambard.toml" in way_out.notes[1]
    site = way_out.hint
    assert not coded(plan_of(tmp_path, "resources.nodes=16", site=site), "gpu-limit", "gpu-cap")


@pytest.mark.parametrize(("nodes", "begin", "asked"), [(255, "", 0), (256, "", 1), (256, "--begin=22:00", 0)])
def test_large_jobs_begin_outside_business_hours(nodes: int, begin: str, asked: int, tmp_path: Path) -> None:
    site = '[policy]\nsource = "brics-jobs"\nmax_gpus = 4096\n'
    words = [f'resources.ask.slurm=["{begin}"]'] if begin else []
    found = coded(plan_of(tmp_path, f"resources.nodes={nodes}", *words, site=site), "business-hours")
    assert len(found) == asked
    assert not [problem for problem in found if problem.fatal]
    assert not asked or "--begin=" in found[0].hint


def test_users_with_a_dot_have_paths_and_scripts(tmp_path: Path) -> None:
    """As the site names them: NAME.PROJECT, folders with the project's short name, accounts brics.PROJECT."""
    environ = {
        "USER": "ab1234.u6gg",
        "HOME": "/home/u6gg/ab1234.u6gg",
        "PROJECTDIR": "/projects/u6gg",
        "SCRATCHDIR": "/scratch/u6gg/ab1234.u6gg",
    }
    one = Session(TWO, account="brics.u6gg", environ=environ)
    one.is_on_cluster = True
    assert one.binding.user == "ab1234.u6gg"
    assert one.binding.roots["checkpoints"] == "/projects/u6gg/ab1234.u6gg/hpctrain/checkpoints"
    assert one.binding.roots["runs"] == "/scratch/u6gg/ab1234.u6gg/hpctrain/runs"
    files = one.files()
    assert "ab1234.u6gg" in str(files["run.sh"]) + str(files["steps/train/job.sh"])
    for name, content in files.items():
        if name.endswith(".sh"):
            text = content if isinstance(content, str) else content.decode()
            assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0, name


def test_every_job_has_a_folder_for_temporary_files_and_login_steps_keep_theirs(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, path=NEOX)
    for step in plan.steps:
        variables = [v for v in step.around.env if v.name == "TMPDIR"]
        assert len(variables) == (not step.here)
        assert all(v.at is Scope.NODE and "/dev/shm/" in repr(v.value) for v in variables)
        assert not [v for v in step.around.env if "/local/user" in repr(v.value)]


def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    train = plan_of(tmp_path).step_named("train")
    assert train is not None
    (script,) = [f for f in train.around.files if f.path == temporary.NAME]
    (tmp_path / script.path).write_text("".join(map(str, script.body)))
    folder = tmp_path / "mine"

    def made() -> int:
        argv = ["bash", str(tmp_path / script.path), str(folder)]
        return subprocess.run(argv, capture_output=True, check=False).returncode

    assert [made(), made()] == [0, 0]
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert made() == 1


def test_a_user_with_a_dot_is_a_user(tmp_path: Path) -> None:
    """As the site has them: ab1234.u6gg of the project u6gg, charged to brics.u6gg."""
    plan = planned(TWO, "isambard", "ab1234.u6gg", tmp_path, 'resources.account="brics.u6gg"')
    assert not [problem for problem in plan.problems if problem.fatal]
    assert plan.digest == planned(TWO, "isambard", "ada", tmp_path, 'resources.account="brics.u6gg"').digest
    assert tunnel_name("regression.of.ab1234.u6gg").replace("-", "").isalnum()


def test_the_plugin_is_the_module_s() -> None:
    assert FACTS.network.modules == (f"brics/aws-ofi-nccl/{FACTS.network.stack['plugin']}",)


def test_whoever_types_what_the_scheduler_is_asked_once_in_60_seconds(tmp_path: Path) -> None:
    """Ten minutes of two runs that are looked at each second; what a site's file says is the floor."""
    seconds = [0.0]
    questions: list[float] = []

    def query(ids: tuple[str, ...], tags: tuple[str, ...]) -> list[JobState]:
        questions.append(seconds[0])
        return [JobState(id=ident, state=State.RUNNING) for ident in ids]

    poll = Poll(
        query=query, cache=tmp_path / "p.json", floor_s=FACTS.policy.poll_seconds, clock=lambda: seconds[0]
    )
    for second in range(600):
        seconds[0] = second
        poll.ask([str(7 + second % 2)], [])
    apart = [later - earlier for earlier, later in itertools.pairwise(questions)]
    assert apart[0] == 1, "the second run's job is new to the first answer"
    assert set(apart[1:]) == {60}
    assert len(questions) == 11
