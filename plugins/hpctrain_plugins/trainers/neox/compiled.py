"""What NeoX compiles when it starts, compiled once: a step before the nodes with GPUs are asked for.

NeoX compiles helpers of its data and its fused kernels into its own sources, with as many ranks at once as
there are, in a checkout that all users of a project share. The step makes a copy of the checkout with both,
where NeoX looks for them, and the ranks start in the run's own copy of that; `start.py` keeps them from
compiling again. Before that it proves that NeoX can start at all in the finished environment.
"""

from __future__ import annotations

from attrs import frozen

from hpctrain.plugin import (
    Artifact,
    Cluster,
    Cmd,
    Code,
    EnvVar,
    File,
    Join,
    Launch,
    Layer,
    Need,
    Pin,
    RunSpec,
    Step,
    Var,
    Word,
)
from hpctrain.toolbox import pinned_commit, target_arch
from hpctrain_plugins.environments.wheels.packages_spec import step_file
from hpctrain_plugins.trainers.external.config import Config
from hpctrain_plugins.trainers.neox import closure

STEP = "neox-compile"
COMPILERS = ("CC", "CXX", "CUDAHOSTCXX", "CUDA_HOME", "MAX_JOBS", "PYTORCH_ROCM_ARCH", "TORCH_CUDA_ARCH_LIST")
"""Variables of the run file that decide what is compiled; its `[env]` reaches the training step alone."""
_WHY = "the run file sets it for training"
PROGRAM = "neox_compile.py"
SOURCE = '''\
"""neox_compile.py [kernels]: in a copy of GPT-NeoX, what it would compile when it starts."""

import os
import pathlib
import subprocess
import sys
import sysconfig

ARCHITECTURES = os.environ.get("TORCH_CUDA_ARCH_LIST", "")
sys.path.insert(0, os.getcwd())

# What its Makefile does, by this Python: that takes the first python3, and the suffix of the system's own.
words = [sys.executable, "-m", "pybind11", "--includes"]
pybind11 = subprocess.run(words, check=True, stdout=subprocess.PIPE)
headers = ["-I" + sysconfig.get_path("include"), *pybind11.stdout.decode().split()]
target = "megatron/data/helpers" + sysconfig.get_config_var("EXT_SUFFIX")
compiler = [*os.environ.get("CXX", "c++").split(), "-O3", "-Wall", "-shared", "-std=c++11", "-fPIC"]
subprocess.run([*compiler, *headers, "megatron/data/helpers.cpp", "-o", target], check=True)
from megatron.data import helpers  # noqa: E402

print(f"compiled {helpers.__file__}")
if sys.argv[1:] != ["kernels"]:
    sys.exit()

import torch  # noqa: E402
from torch.utils import cpp_extension  # noqa: E402

if torch.version.hip is None and not cpp_extension.CUDA_HOME:
    sys.exit("error: NeoX's kernels need nvcc, and there is none here: a module of the site brings it")

from megatron import fused_kernels  # noqa: E402

compile_as_neox_says = cpp_extension.load


def compile_for_this_gpu(**said):
    """NeoX names architectures of its own, which newer compilers refuse (70) and which are not the GPU's."""
    os.environ["TORCH_CUDA_ARCH_LIST"] = ARCHITECTURES
    flags = said["extra_cuda_cflags"]
    said["extra_cuda_cflags"] = [f for f in flags if f != "-gencode" and not f.startswith("arch=")]
    return compile_as_neox_says(**said)


cpp_extension.load = compile_for_this_gpu
fused_kernels.load()
build = pathlib.Path(fused_kernels.__file__).parent / "build"
kernels = sorted(build.glob("*.so"))
for left in set(build.iterdir()) - set(kernels):
    left.unlink()
print(f"compiled {len(kernels)} fused kernels for {ARCHITECTURES or 'the GPU that is here'}")
sys.exit(0 if kernels else "error: NeoX compiled no kernel")
'''


@frozen(kw_only=True)
class Compiled:
    """A copy of NeoX with what it compiles."""

    folder: Word
    step: Step

    @property
    def is_shared(self) -> bool:
        """Whether other runs use it too: the ranks then start in the run's own copy of it."""
        return self.step.makes is not None


def of(
    run: RunSpec, cluster: Cluster, config: Config, source: tuple[Code, Word], pins: tuple[Pin, ...]
) -> Compiled:
    """One for all runs of the same code, environment and GPU; of code that lies outside of every key, a
    folder on the cluster, one for each run."""
    repository, checkout = source
    kernels, later = closure.kernels(config), sorted(closure.imported_later(config))
    env = {name: value for name, value in run.env.items() if name in COMPILERS}
    identity = _identity(repository, pins)
    artifact = Artifact(
        name="neox",
        role="assets",
        inputs={
            "code": identity,
            "kernels": kernels,
            "imports": later,
            "env": env,
            "environment": [run.environment.use, run.environment.python, repr(run.environment.options)],
            "modules": list(cluster.modules.build) if cluster.modules else [],
            "gpu": cluster.hardware.gpu,
        },
        arch=target_arch(pins, cluster),
        pins=tuple(pin for pin in pins if pin.kind not in ("hub", "url")),
    )
    folder_of_run = Join(Var("HPC_RUN"), "/neox")
    target: Word = Var("WORK") if identity else folder_of_run
    gpus = min(1, cluster.hardware.gpus_per_node)
    step = Step(
        name=STEP,
        commands=(
            Cmd.of("python", "-m", "hpctrain_job.tree", checkout, target),
            Cmd(("python", "-m", "hpctrain_job.closure", "train.py", *later), cwd=target),
            Cmd(("python", step_file(PROGRAM), *(("kernels",) if kernels else ())), cwd=target),
        ),
        needs=frozenset({Need.TARGET, Need.GPU} if gpus else {Need.TARGET}),
        inside=True,
        makes=artifact if identity else None,
        launch=Launch(gpus_per_node=gpus),
        minutes=60,
        files=(File(path=PROGRAM, body=(SOURCE,)),),
        layer=Layer(env=tuple(EnvVar(name=n, value=v, first=True, why=_WHY) for n, v in env.items())),
    )
    return Compiled(folder=artifact.loc if identity else folder_of_run, step=step)


def _identity(repository: Code, pins: tuple[Pin, ...]) -> list[str]:
    """What the content of the code is named by; nothing where it may change under its name."""
    if repository.git:
        return [repository.git, pinned_commit(pins, repository.git, repository.rev)]
    return [repository.sha256] if repository.sha256 else []
