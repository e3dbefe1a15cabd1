"""What Frontier's plugin puts around steps, and where its assets lie; its limits, refused with their rule."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from hpctrain.errors import Problem
from hpctrain.model.plan import Plan
from hpctrain.model.step import Ranks
from hpctrain.session import Session
from tests.clusters import HOMES, planned
from tests.conftest import needs

pytestmark = pytest.mark.usefixtures("workspace")
EXAMPLES = HOMES["frontier"] / "examples"
TORCH = os.environ.get("HPCTRAIN_TORCH_PYTHON", sys.executable)


def plan(name: str, tmp_path: Path, *sets: str) -> Plan:
    environ = {"USER": "ada", "HOME": str(tmp_path)}
    return Session(EXAMPLES / name, sets=['resources.account="abc123"', *sets], environ=environ).plan()


def fatal(found: Plan) -> list[Problem]:
    return [p for p in found.problems if p.fatal]


def variables(found: Plan, step: str = "train") -> Mapping[str, object]:
    planned = found.step_named(step)
    assert planned is not None
    return {v.name: v.value for v in planned.around.env}


def modules(found: Plan, step: str) -> list[str]:
    planned = found.step_named(step)
    assert planned is not None
    return [f"{m.action} {m.name}".strip() for m in planned.around.modules]


OLCF = [
    "reset",
    "PrgEnv-gnu/8.7.0",
    "cpe/26.03",
    "miniforge3/23.11.0-0",
    "rocm/7.1.1",
    "craype-accel-amd-gfx90a",
]


def test_the_modules_stand_in_the_document_s_order(tmp_path: Path) -> None:
    """OLCF's list; rccl's plugin after rocm; conda's module gone before the ranks start."""
    found = plan("tutorial.toml", tmp_path)
    stack = [OLCF[0], *(f"load {name}" for name in OLCF[1:])]
    assert modules(found, "compile-deepspeed") == stack
    assert modules(found, "wheels") == stack  # conda is a module, on the login node too
    last = ["unload miniforge3/23.11.0-0", "load rccl-net-plugin"]
    assert modules(found, "train") == [*stack, *last]


def test_libraries_of_a_cray_environment_that_is_not_the_default_come_first(tmp_path: Path) -> None:
    """OLCF's own line, for building and running; not where the modules are the tutorial's."""
    found = plan("tutorial.toml", tmp_path)
    for name in ("compile-deepspeed", "train"):
        step = found.step_named(name)
        assert step is not None
        assert [line for line in step.around.job if "cray.sh" in repr(line)]
    assert step is not None
    (script,) = [f for f in step.around.files if f.path == "cray.sh"]
    (tmp_path / "cray.sh").write_text("".join(map(str, script.body)))
    shell = 'set -euo pipefail; . ./cray.sh; echo "${LD_LIBRARY_PATH:-none}"'

    def said(**env: str) -> str:
        done = subprocess.run(
            ["bash", "-c", shell], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert said() == "none"
    assert said(CRAY_LD_LIBRARY_PATH="/cray") == "/cray"
    assert said(CRAY_LD_LIBRARY_PATH="/cray", LD_LIBRARY_PATH="/rocm") == "/cray:/rocm"
    site = '[modules]\nsource = "tutorial"\nbuild = ["reset", "rocm/6.1.3"]\nrun = ["reset", "rocm/6.1.3"]\n'
    own = planned(EXAMPLES / "tutorial.toml", "frontier", "ada", tmp_path, site=site).step_named("train")
    assert own is not None
    assert not [line for line in own.around.job if "cray.sh" in repr(line)]


def test_one_task_a_gcd_that_calls_it_number_0(tmp_path: Path) -> None:
    found = plan("lora-2x8.toml", tmp_path)
    train = found.step_named("train")
    assert train is not None
    launch = train.step.launch
    assert (launch.ranks, launch.world, launch.cpus_per_rank) == (Ranks.PER_GPU, 16, 7)
    assert (launch.bind, launch.visible) == ("closest", "one")
    assert variables(found)["LOCAL_RANK"] == "0"
    assert not fatal(found)
    # An agent of torchrun starts its ranks itself, and they see every GCD.
    agent = plan("lora-2x8.toml", tmp_path, 'train.trl.ranks="per_node"')
    assert "LOCAL_RANK" not in variables(agent)


def test_caches_are_of_one_node_and_one_job(tmp_path: Path) -> None:
    train = plan("lora-2x8.toml", tmp_path).step_named("train")
    assert train is not None
    here = {v.name: repr(v.value) for v in train.around.env if v.name.endswith(("_PATH", "_DIR"))}
    assert {"MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR", "TRITON_CACHE_DIR"} <= set(here)
    assert all("HPC_JOB" in value and "/tmp/" in value for name, value in here.items() if "MIOPEN" in name)
    (made,) = train.around.node
    assert "miopen" in repr(made)
    assert "triton" in repr(made)


def test_128_nodes_get_the_archive_by_broadcast(tmp_path: Path) -> None:
    train = plan("lora-128x8.toml", tmp_path).step_named("train")
    assert train is not None
    (spread,) = [line for line in train.around.job if "hpc_spread" in repr(line)]
    assert "nodelocal" in repr(spread)
    few = plan("lora-128x8.toml", tmp_path, "resources.nodes=48", 'resources.time="2h"').step_named("train")
    assert few is not None
    assert not [line for line in few.around.job if "hpc_spread" in repr(line)]
    assert [line for line in few.around.node if "unpack.sh" in repr(line)]


def test_snapshots_lie_in_the_three_folders_of_the_document(tmp_path: Path) -> None:
    found = plan("tutorial.toml", tmp_path)
    made = {s.name: s.step.makes for s in found.steps if s.step.makes}
    assert made["model"].folder == "llama-models-cache"
    assert made["tokenizer"].folder == "llama-tokenizers-cache"
    assert made["dataset"].folder == "data_cache/mlabonne___guanaco-llama2-1k"
    assert made["arrow"].folder == "data_cache"
    assert made["model"].key != made["tokenizer"].key


def test_92_nodes_have_6_hours_and_91_have_2(tmp_path: Path) -> None:
    six = 'resources.time="6h"'
    large = plan("lora-2x8.toml", tmp_path, "resources.nodes=92", six)
    assert not fatal(large)
    assert large.step_named("train").queue == "batch-bin4"  # type: ignore[union-attr]
    (problem,) = fatal(plan("lora-2x8.toml", tmp_path, "resources.nodes=91", six))
    assert problem.code == "time-limit"
    assert problem.notes[0].startswith("batch-bin5, 1-91 nodes: 2h (OLCF: Frontier user guide")
    assert ": 3 jobs of it)" in problem.hint


def test_extended_and_debug_are_taken_by_name(tmp_path: Path) -> None:
    def queue(*sets: str) -> list[Problem]:
        return fatal(plan("lora-2x8.toml", tmp_path, *sets))

    assert not queue('resources.queue="extended"', 'resources.time="24h"')
    (wide,) = queue('resources.queue="extended"', 'resources.time="24h"', "resources.nodes=65")
    assert (wide.code, wide.hint) == ("node-limit", "nodes = 64")
    assert not queue('resources.queue="debug"', 'resources.time="2h"')
    (long,) = queue('resources.queue="debug"', 'resources.time="3h"')
    assert long.code == "time-limit"
    assert "continue" not in long.hint  # debug forbids chains
    (three,) = queue("resources.nodes=8", 'resources.time="3h"')
    assert 'time = "2h"' in three.hint


def environment_file(found: Plan, tmp_path: Path, **more: str) -> dict[str, str]:
    """Run the step's own script as its first rank would, with every variable of the plan that is plain."""
    train = found.step_named("train")
    assert train is not None
    (script,) = [f for f in train.around.files if f.path == "deepspeed_env.sh"]
    path = tmp_path / script.path
    path.write_text("".join(map(str, script.body)))
    plain = {v.name: v.value for v in train.around.env if isinstance(v.value, str) and v.value}
    (line,) = [cmd for cmd in train.around.task if "deepspeed_env.sh" in repr(cmd)]
    patterns = [word for word in line.argv[2:] if isinstance(word, str)]  # type: ignore[union-attr]
    env = {**plain, "PATH": os.environ["PATH"], "HPC_RANK": "0", "HPC_JOB": "7", **more}
    env["DS_ENV_FILE"] = more.get("DS_ENV_FILE", str(tmp_path / "deepspeed.env"))
    subprocess.run(["bash", str(path), *patterns], env=env, check=True)
    file = Path(env["DS_ENV_FILE"])
    assert file.stat().st_mode & 0o777 == 0o600
    return dict(row.split("=", 1) for row in file.read_text().splitlines())


def test_deepspeed_s_file_holds_the_plan_and_no_secret(tmp_path: Path) -> None:
    found = plan("tutorial.toml", tmp_path, 'env={MY_SWITCH="on"}')
    said = environment_file(
        found,
        tmp_path,
        HF_TOKEN="hf_secret",
        CONDA_PREFIX="two\nlines",
        NCCL_NET="AWS Libfabric",
        MY_SWITCH="on",
    )
    offline = {"HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"}
    planned = {n for n in variables(found) if n.startswith(("FI_", "HSA_", "NCCL_")) and n != "NCCL_SOCKET"}
    assert {"PATH", "ROCM_HOME", "CC", "CXX", "MY_SWITCH"} | offline | planned <= set(said)
    assert len(planned) > 12
    assert said["NCCL_NET"] == "AWS Libfabric"
    assert not {"HF_TOKEN", "CONDA_PREFIX", "HPC_JOB"} & set(said)
    assert "DS_ENV_FILE" not in variables(plan("lora-2x8.toml", tmp_path))  # no DeepSpeed in it


def test_a_line_break_is_what_deepspeed_s_file_cannot_hold(tmp_path: Path) -> None:
    def told(example: str) -> list[str]:
        problems = plan(example, tmp_path, 'env={TWO="a\\nb", ONE="a b"}').problems
        return [p.where for p in problems if p.code == "deepspeed-line"]

    assert told("tutorial.toml") == ["env.TWO"]
    assert told("lora-2x8.toml") == []  # no DeepSpeed in it


def test_the_shared_file_is_written_when_the_run_file_asks(tmp_path: Path) -> None:
    shared = tmp_path / "home/.deepspeed_env"
    shared.parent.mkdir()
    found = plan("tutorial.toml", tmp_path, f'env={{DS_ENV_FILE="{shared}"}}')
    assert variables(found)["DS_ENV_FILE"] == str(shared)
    assert "PATH" in environment_file(found, tmp_path, DS_ENV_FILE=str(shared))


PDSH = '#!/bin/sh\nprintf "%s\\n" "$@" >"$SEEN"\n'


@pytest.mark.torch
def test_deepspeed_s_own_launcher_hands_the_file_on(tmp_path: Path) -> None:
    """The real launcher, whose way to other nodes writes down what it was told."""
    asked = subprocess.run([TORCH, "-c", "import deepspeed"], capture_output=True, check=False)
    needs("deepspeed", not asked.returncode, "HPCTRAIN_TORCH_PYTHON has no DeepSpeed")
    environment_file(plan("tutorial.toml", tmp_path), tmp_path, NCCL_NET="AWS Libfabric")
    (tmp_path / "hosts").write_text("frontier00001 slots=8\nfrontier00002 slots=8\n")
    (tmp_path / "pdsh").write_text(PDSH)
    (tmp_path / "pdsh").chmod(0o755)
    home = tmp_path / "alone"
    home.mkdir()
    env = {
        "PATH": f"{tmp_path}:{Path(TORCH).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "SEEN": str(tmp_path / "seen"),
        "DS_ENV_FILE": str(tmp_path / "deepspeed.env"),
    }
    words = ("--hostfile", "hosts", "--no_ssh_check", "--master_addr", "frontier00001", "train.py")
    argv = [TORCH, "-m", "deepspeed.launcher.runner", *words]
    done = subprocess.run(
        argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    seen = (tmp_path / "seen").read_text()
    assert "export FI_MR_CACHE_MONITOR=kdreg2;" in seen
    assert 'export NCCL_NET="AWS Libfabric";' in seen
    assert "export ROCM_HOME=/opt/rocm-7.1.1;" in seen


def test_a_torch_for_another_rocm_than_the_module_s_is_told(tmp_path: Path) -> None:
    (problem,) = [p for p in plan("tutorial.toml", tmp_path).problems if p.code == "rocm-mismatch"]
    assert problem.message == "torch is built for ROCm 6.1, and the module is rocm/7.1.1"
    assert problem.where == "environment.conda.first"
    assert problem.span is not None
    assert problem.span.file.endswith("tutorial.toml")
    assert problem.span.text.startswith("first = [")
    assert not problem.fatal
    assert problem.notes[0] == "hipcc 7.1.1 compiles deepspeed against that torch"


def test_a_torch_for_the_module_s_rocm_is_not(tmp_path: Path) -> None:
    """OLCF's of today by the facts, or the tutorial's modules in somebody's settings."""
    current = plan("lora-2x8.toml", tmp_path)
    settings = tmp_path / "settings.toml"
    module_lists = 'build = ["reset", "rocm/6.1.3"]\nrun = ["reset", "rocm/6.1.3"]\n'
    settings.write_text(f'[cluster.frontier.modules]\nsource = "tutorial"\n{module_lists}')
    environ = {"USER": "ada", "HOME": str(tmp_path), "HPCTRAIN_SETTINGS": str(settings)}
    sets = ['resources.account="abc123"']
    tutorial = Session(EXAMPLES / "tutorial.toml", sets=sets, environ=environ).plan()
    for fitting in (current, tutorial):
        assert not [p for p in fitting.problems if p.code == "rocm-mismatch"]
