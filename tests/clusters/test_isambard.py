"""Isambard: which NCCL is loaded, where it is preloaded, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

import hpc_isambard
from hpctrain.errors import Problem
from hpctrain.model.layer import At, EnvVar
from hpctrain.model.plan import Plan
from hpctrain.model.words import Loc
from hpctrain.plan.explain import explain
from hpctrain.runfile.facts import load_cluster
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
        assert own.at is At.TASK
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
    assert "ln -sfn train.log logs/neox-pretrain-" in " ".join(map(str, shown(train.around.job)))
    (cache,) = [v for v in train.around.env if v.name == "TRITON_CACHE_DIR"]
    assert cache.at is At.NODE
    assert "HPC_JOB" in repr(cache.value)


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
    ],
)
def test_what_users_met_is_explained(line: str, rule: str) -> None:
    assert [r.name for r in hpc_isambard.diagnose_rules() if re.search(r.pattern, line)] == [rule]
