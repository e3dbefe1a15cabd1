"""What NeoX compiles is compiled once, where it looks for it; what it imports is there before it trains."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hpctrain.model.run import Code, Environment, Package
from hpctrain.model.step import Need, Pin, Step
from hpctrain.model.words import Cmd, Join, Var
from hpctrain_job import closure as job_closure
from hpctrain_plugins.trainers import neox
from hpctrain_plugins.trainers.neox import closure, compiled, start
from tests.trainers import plans
from tests.trainers.external import real, runs
from tests.trainers.external.runs import codes, problems, spec, train
from tests.trainers.external.test_neox import MODEL, RUN

FUSED = {"scaled_upper_triang_masked_softmax_fusion": True}
NAMES = (*closure.PACKAGES.values(), "pybind11", "flash-attn")
LOCK = tuple(Pin(name, "pypi", "1.0 sha256:00") for name in NAMES)


def _run(settings: dict[str, Any] | None = None, **fields: Any) -> Any:
    return spec(neox, MODEL, RUN, options={"settings": settings or {}}, **fields)


def _step(run: Any, pins: tuple[Pin, ...] = (), gpus: int = 4) -> Step:
    answer = neox.train_command(run, plans.cluster(gpus), runs.ASSETS, pins)
    return answer.before[0]


def test_one_step_proves_the_imports_then_compiles_a_copy() -> None:
    step = _step(_run())
    assert (step.name, step.inside, step.launch.gpus_per_node) == ("neox-compile", True, 1)
    assert step.needs == {Need.TARGET, Need.GPU}
    work = Var("WORK")
    copied, proven, built = step.commands
    assert copied == Cmd.of("python", "-m", "hpctrain_job.tree", runs.ASSETS[".code"], work)
    assert proven == Cmd(("python", "-m", "hpctrain_job.closure", "train.py", "flash_attn"), cwd=work)
    assert isinstance(built, Cmd)
    assert (built.cwd, "kernels" in built.argv) == (work, False)
    (fused,) = [c for c in _step(_run(FUSED)).commands if isinstance(c, Cmd) and "kernels" in c.argv]
    assert fused.argv[:-1] == built.argv
    assert _step(_run(), gpus=0).needs == {Need.TARGET}


def test_the_key_is_of_what_is_compiled() -> None:
    def key(run: Any, pins: tuple[Pin, ...] = ()) -> str:
        artifact = _step(run, pins).makes
        assert artifact is not None
        return artifact.key

    same = key(_run({"train_iters": 7}))
    assert key(_run()) == same
    assert key(_run(), (Pin("datasets/org/x@main", "hub", "ab"),)) == same
    code = Code(git="https://github.com/org/x", rev="0" * 40)
    other_keys = {
        key(_run(FUSED)),
        key(_run(), (Pin("torch", "pypi", "2.10.0"),)),
        key(_run(env={"TORCH_CUDA_ARCH_LIST": "9.0"})),
        key(_run(code=code)),
    }
    assert len(other_keys | {same}) == 5


def test_the_run_files_own_compilers_reach_the_step() -> None:
    step = _step(_run(env={"CC": "/usr/bin/gcc-14", "NCCL_DEBUG": "INFO"}))
    assert [(var.name, var.value) for var in step.layer.env] == [("CC", "/usr/bin/gcc-14")]


def test_code_that_has_no_name_for_its_content_is_copied_for_each_run() -> None:
    """A folder on the cluster may be another one tomorrow, under the same path."""
    run = _run(code=Code(path="/projects/a5k/neox"))
    step = _step(run)
    assert step.makes is None
    folder = Join(Var("HPC_RUN"), "/neox")
    assert train(neox, run).layer.task == (Cmd.of("cd", folder),)
    assert all(isinstance(c, Cmd) and c.cwd == folder for c in step.commands[1:])
    assert _step(_run(code=Code(path="neox", sha256="ab"))).makes is not None


def test_the_commit_that_trains_stands_in_the_file() -> None:
    """NeoX asks git, which knows nothing of a copy."""
    code = Code(git="https://github.com/org/x", rev="main")
    pins = (Pin("https://github.com/org/x@main", "git", "c" * 40),)
    answer = neox.train_command(_run(code=code), plans.cluster(4), runs.ASSETS, pins)
    assert runs.resolved(answer, neox.FILE)["git_hash"] == "c" * 40


def _locked(pins: tuple[Pin, ...], settings: dict[str, Any] | None = None, **fields: Any) -> list[Any]:
    run = _run(settings, environment=Environment(use="uv"), **fields)
    return [p for p in problems(neox, run, pins=pins) if p.code == "neox-packages"]


def test_a_package_that_nothing_brings_is_refused_with_the_lock() -> None:
    fork = Code(git="https://github.com/GeodesicResearch/geodesic-gpt-neox", rev="c43cf196" * 5)
    assert _locked(LOCK, code=fork) == []
    less = tuple(pin for pin in LOCK if pin.name != "sentencepiece")
    (problem,) = _locked(less, code=fork)
    assert problem.fatal
    assert problem.message == "NeoX needs sentencepiece, and the locked environment has no such package"
    assert problem.hint.startswith('packages = ["sentencepiece"] ')
    assert [p.fatal for p in _locked(less)] == [False]  # a fork that we have not read
    (problem,) = _locked(LOCK, {**FUSED, "use_wandb": True}, code=fork)
    assert "NeoX needs ninja, wandb," in problem.message


def test_it_is_judged_only_where_the_lock_names_every_package() -> None:
    less = LOCK[:3]
    assert len(_locked(less)) == 1
    assert _locked(()) == []
    image = _run(environment=Environment(use="apptainer"))
    assert "neox-packages" not in codes(problems(neox, image, pins=less))
    by_git = tuple(Package(name=name, git="https://x.y/z") for name in NAMES)
    assert "neox-packages" not in codes(
        problems(neox, _run(environment=Environment(use="uv", packages=by_git)), pins=less)
    )


def test_the_stack_brings_all_that_neox_starts_with() -> None:
    for stack in neox.STACKS.values():
        brought = {Package.parse(text).name for text in (*stack.packages, *stack.compile)}
        assert {*closure.PACKAGES.values(), "pybind11", "ninja"} <= brought


HELPERS = """
#include <Python.h>
static PyModuleDef it = {PyModuleDef_HEAD_INIT, "helpers", nullptr, -1, nullptr};
PyMODINIT_FUNC PyInit_helpers(void) { return PyModule_Create(&it); }
"""
KERNELS = """
import os
from pathlib import Path
from torch.utils import cpp_extension
os.environ["TORCH_CUDA_ARCH_LIST"] = ""
def load(neox_args=None):
    build = Path(__file__).parent / "build"
    build.mkdir()
    flags = ["-O3", "-gencode", "arch=compute_70,code=sm_70", "--use_fast_math"]
    cpp_extension.load(name="one", build_directory=build, extra_cuda_cflags=flags)
"""
EXTENSION = """
import os
CUDA_HOME = os.environ.get("CUDA_HOME")
def load(name, build_directory, extra_cuda_cflags):
    (build_directory / "lock").touch()
    (build_directory / f"{name}.so").write_text(f"{os.environ['TORCH_CUDA_ARCH_LIST']} {extra_cuda_cflags}")
"""


@pytest.fixture
def standin(tmp_path: Path) -> Path:
    """Stand-ins of torch and NeoX's two builds that write down what they are told."""
    files = {
        "torch/__init__.py": "class version:\n    hip = None\n",
        "torch/utils/__init__.py": "",
        "torch/utils/cpp_extension.py": EXTENSION,
        "megatron/__init__.py": "",
        "megatron/data/__init__.py": "",
        "megatron/data/data_utils.py": "def compile_helper():\n    raise SystemExit('a rank compiled')\n",
        "megatron/data/helpers.cpp": HELPERS,
        "pybind11.py": "print('-Ipybind11')\n",
        "megatron/fused_kernels/__init__.py": KERNELS,
        compiled.PROGRAM: compiled.SOURCE,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def _compile(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, compiled.PROGRAM, *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **env},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_kernels_are_for_the_gpu_and_nothing_else_is_left(standin: Path) -> None:
    done = _compile(standin, "kernels", CUDA_HOME="/cuda", TORCH_CUDA_ARCH_LIST="9.0")
    assert done.returncode == 0, done.stderr
    build = standin / "megatron/fused_kernels/build"
    assert {path.name: path.read_text() for path in build.iterdir()} == {
        "one.so": "9.0 ['-O3', '--use_fast_math']"
    }
    assert "compiled 1 fused kernels for 9.0" in done.stdout
    suffix = [path.name for path in (standin / "megatron/data").glob("helpers.*.so")]
    assert len(suffix) == 1


def test_a_missing_compiler_is_said(standin: Path) -> None:
    done = _compile(standin, "kernels")
    assert (done.returncode, "NeoX's kernels need nvcc" in done.stderr) == (1, True)
    assert _compile(standin).returncode == 0  # nobody asked for kernels


def test_no_rank_compiles_and_each_finds_the_kernels(standin: Path) -> None:
    build = standin / "megatron/fused_kernels/build"
    build.mkdir()
    (build / "one_kernel.py").write_text("print('kernel of the step')\n")
    (standin / "megatron/neox_arguments.py").write_text(
        "class NeoXArgs:\n"
        "    @classmethod\n"
        "    def from_ymls(cls, files, overwrite_values):\n        return cls()\n"
        "    def get_deepspeed_main_args(self):\n        return ['train.py']\n"
    )
    (standin / "train.py").write_text(
        "from megatron import fused_kernels\n"
        "fused_kernels.load(None)\n"
        "from megatron.data.data_utils import compile_helper\n"
        "compile_helper()\n"
        "import one_kernel\n"
    )
    (standin / start.FILE).write_text(start.SOURCE)
    done = subprocess.run(
        [sys.executable, start.FILE, "neox.yml"],
        cwd=standin,
        env={"WORLD_SIZE": "2"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "kernel of the step\n"), done.stderr
    assert not (standin / "megatron/fused_kernels/build/one.so").exists()


def test_the_table_is_what_the_real_program_imports() -> None:
    """With a clone of NeoX; `packaging` is taken from pkg_resources by EleutherAI's."""
    real.python_of("neox")
    imported = set(job_closure.closure(Path(os.environ["HPCTRAIN_NEOX_PATH"]), "train.py"))
    assert {name.replace("pkg_resources", "packaging") for name in imported} == set(closure.PACKAGES)


def test_the_real_program_is_imported_and_its_helpers_compile(tmp_path: Path) -> None:
    checkout = tmp_path / "neox"
    source = os.environ.get("HPCTRAIN_NEOX_PATH", "")
    copied = real.run("neox", "-m", "hpctrain_job.tree", source, str(checkout))
    assert copied.returncode == 0, copied.stderr
    proven = real.run("neox", "-m", "hpctrain_job.closure", "train.py", folder=checkout)
    assert proven.returncode == 0, proven.stderr
    (tmp_path / compiled.PROGRAM).write_text(compiled.SOURCE)
    done = real.run("neox", str(tmp_path / compiled.PROGRAM), folder=checkout)
    assert done.returncode == 0, done.stderr
    assert list(checkout.glob("megatron/data/helpers.cpython-*.so"))
