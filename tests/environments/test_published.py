"""What the clusters' documents compile, from the published sources: their own set-up scripts, built offline.

torch is the one that the tests have, for processors: it stands in for a CUDA build. So the CUDA kernels of
causal-conv1d and mamba-ssm are not compiled, by their own switch; DeepSpeed's fused_adam is, for processors.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hpctrain.errors import StepFailed
from hpctrain.model.run import Environment, Package, RunSpec
from hpctrain.run.system.tools import Tools
from hpctrain_plugins.environments import venv
from hpctrain_plugins.environments.wheels.options import Built
from tests.conftest import ROOT, needs
from tests.defaults.rig import World, cluster, plan
from tests.environments.small_wheel import wheel
from tests.environments.test_compile import ON, NoRoute
from tests.environments.test_documents import index_answers

pytestmark = [pytest.mark.torch, pytest.mark.slow]

TORCH = os.environ.get("HPCTRAIN_TORCH_PYTHON", sys.executable)
SHORT = f"{sys.version_info[0]}.{sys.version_info[1]}"
CCACHE = """\
#!/bin/sh
export CCACHE_DIR='{folder}' CCACHE_BASEDIR=/ CCACHE_NOHASHDIR=1
exec ccache {compiler} "$@"
"""
HERE = "2.13.0+here"
"""No index has this build, so that the shelf is where it comes from."""
OUTSIDE = ("PIP_", "SSL_CERT_", "http_proxy", "https_proxy", "no_proxy", "HTTP", "NO_PROXY")
"""What the owner of a machine may have set for every program on it; no test needs any of these."""


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A wheel called torch that leads to the torch of the tests, with the CUDA that it is to be built for."""
    code = "import sys, torch; print('%d.%d' % sys.version_info[:2], torch.__path__[0])"
    done = subprocess.run([TORCH, "-c", code], capture_output=True, text=True)
    needs("torch", done.returncode == 0, "HPCTRAIN_TORCH_PYTHON has no torch")
    python, place = done.stdout.split()
    needs("torch", python == SHORT, f"the torch of the tests is Python {python}'s")
    needs("index", index_answers(), "no package index answers here")
    claims = "import os; os.environ.get('STAND_IN_CUDA') and __import__('stand_in_cuda')"
    lines = f"{Path(place).parent}\n{claims}\n"
    folder = tmp_path / "shelf"
    claim = "import torch.version\ntorch.version.cuda = '12.6'\n"
    wheel(folder, "torch", HERE, more={"leads_to_torch.pth": lines, "stand_in_cuda.py": claim})
    return folder


def compilers(tmp_path: Path) -> Path:
    """A folder for the path with the machine's compilers behind ccache, where that is installed: whatever the
    same compiler was handed before, with the same flags, is not compiled again. Which paths it came from
    does not count, since each test has a folder of its own."""
    folder = tmp_path / "compilers"
    folder.mkdir()
    for name in ("c++", "g++", "cc", "gcc") if shutil.which("ccache") else ():
        if compiler := shutil.which(name):
            script = folder / name
            script.write_text(CCACHE.format(folder=ROOT / ".cache/ccache", compiler=compiler))
            script.chmod(0o755)
    return folder


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / "files").mkdir()
    path = os.pathsep.join((str(compilers(tmp_path)), str(Path(sys.executable).parent), os.environ["PATH"]))
    mine = {name: value for name, value in os.environ.items() if name.startswith(OUTSIDE)}
    return World(tmp_path / "fs", tmp_path / "files", env={**mine, "PATH": path})


def built(shelf: Path, world: World, package: str, **how: object) -> list[Path]:
    """Lock it, fetch it and its tools, compile it where no network is; the kept wheel."""
    name = package.partition("==")[0]
    options = venv.Options(
        first=(f"torch=={HERE}",),
        find_links=(str(shelf),),
        builds={name: Built(**how)},  # type: ignore[arg-type]
        verify=False,
    )
    spec = Environment(use="venv", python=SHORT, compile=(Package.parse(package),), options=options)
    run = RunSpec(name="r", cluster="toy", environment=spec)
    pins = tuple(venv.pin(run=run, cluster=cluster(), tools=Tools()))
    made = plan(run, ON, venv, NoRoute(), pins=pins)
    world.execute(made)
    return sorted(world.published(made, f"compile-{name}").glob("*.whl"))


@pytest.mark.parametrize("package", ["causal-conv1d==1.5.3.post1", "mamba-ssm==2.2.5"])
def test_its_switch_decides_whether_it_asks_for_the_network(shelf: Path, world: World, package: str) -> None:
    words = package.partition("==")[0].removesuffix("-ssm").replace("-", "_").upper()
    how = {"STAND_IN_CUDA": "yes", f"{words}_SKIP_CUDA_BUILD": "TRUE"}
    tools = {"build": ("ninja", "packaging")}
    with pytest.raises(StepFailed) as caught:
        built(shelf, world, package, env=how, **tools)
    said = "\n".join((*caught.value.problems[0].notes, caught.value.problems[0].message))
    assert f"the build of {package.partition('==')[0]} asked for the network" in said
    assert "_FORCE_BUILD" in said
    (kept,) = built(shelf, world, package, env={**how, f"{words}_FORCE_BUILD": "TRUE"}, **tools)
    assert kept.name.startswith(package.replace("-", "_", 1).replace("==", "-"))


def test_fused_adam_is_compiled_into_deepspeed_s_wheel(shelf: Path, world: World, tmp_path: Path) -> None:
    """The document's switch, its own compiler, its own sources: the operator loads without another build."""
    (kept,) = built(
        shelf,
        world,
        "deepspeed==0.17.5",
        env={"DS_BUILD_FUSED_ADAM": "1", "DS_ACCELERATOR": "cpu", "MAX_JOBS": "1"},
        build=("ninja", "packaging", "psutil", "py-cpuinfo"),
        programs=("g++",),
    )
    tag = f"cp{SHORT.replace('.', '')}"
    assert kept.name == f"deepspeed-0.17.5-{tag}-{tag}-linux_{os.uname().machine}.whl"
    (python,) = (world.root("env")).glob("venv-*/bin/python")
    code = (
        "import torch; from deepspeed.ops.op_builder.cpu import FusedAdamBuilder as F; op = F().load();"
        "print(op.__name__)"
    )
    env = {"PATH": "/nowhere", "HOME": str(tmp_path), "DS_ACCELERATOR": "cpu"}
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, env=env)
    assert done.stdout.splitlines()[-1] == "deepspeed.ops.adam.fused_adam_op", done.stderr
