"""The pins of the clusters' own documents still resolve, for their machines; asks the network's index."""

from __future__ import annotations

import os
import urllib.request

import pytest

from hpctrain.errors import ConfigError
from hpctrain.model.run import Environment, Package, RunSpec
from hpctrain.model.step import Pin
from hpctrain.run.tools import Tools
from hpctrain_job import sdist
from hpctrain_plugins.environments import unverified, uv, venv
from hpctrain_plugins.environments.options import Options
from tests.conftest import needs
from tests.defaults.rig import cluster

FRONTIER = (
    "accelerate==1.10.1",
    "datasets==3.1.0",
    "evaluate==0.4.3",
    "peft==0.17.1",
    "safetensors==0.6.2",
    "sentencepiece==0.2.1",
    "tensorboard==2.20.0",
    "transformers==4.57.1",  # the document's 4.57.0 was withdrawn
    "trl==0.23.1",
)
ISAMBARD = ("datasets==4.5.0", "wandb==0.24.0", "transformers>=4.57,<4.58")
LEONARDO = ("transformers==4.57.5", "datasets>=4.0.0", "torchdata", "pyyaml", "ninja", "packaging", "einops")


@pytest.fixture
def tools() -> Tools:
    found = Tools()
    needs("uv", found.which("uv") is not None, "uv is not on this computer")
    indexes = sdist.configured(os.environ).indexes
    reached = any(map(_answers, indexes))
    needs("index", reached, "no package index answers here, so that the documents' pins cannot be looked up")
    return found


def _answers(index: str) -> bool:
    if not index.startswith("http"):
        return False
    try:
        with urllib.request.urlopen(f"{index.rstrip('/')}/six/", timeout=20) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def resolved(tools: Tools, arch: str, python: str, spec: Environment) -> dict[str, Pin]:
    run = RunSpec(name="r", cluster="toy", environment=spec)
    module = uv if spec.use == "uv" else venv
    return {
        p.name: p for p in module.pin(run=run, cluster=cluster(arch=arch), tools=tools) if p.kind == "pypi"
    }


def environment(
    use: str,
    python: str,
    packages: tuple[str, ...],
    compiled: tuple[str, ...],
    options: Options,
) -> Environment:
    return Environment(
        use=use,
        python=python,
        packages=tuple(map(Package.parse, packages)),
        compile=tuple(map(Package.parse, compiled)),
        options=options,
    )


def test_frontier_with_wheels_of_the_vendor(tools: Tools) -> None:
    """torch for ROCm is on its own index; nobody answers at this one, as nobody would behind a wall."""
    first = ("torch==2.5.1+rocm6.1", "torchvision==0.20.1+rocm6.1", "torchaudio==2.5.1+rocm6.1")
    options = Options(first=first, first_index="http://127.0.0.1:9/whl/rocm6.1")
    pins = resolved(
        tools, "x86_64", "3.10", environment("venv", "3.10", FRONTIER, ("deepspeed==0.17.5",), options)
    )
    assert pins["torch"].value == "2.5.1+rocm6.1 unverified"
    assert not [name for name in pins if name.startswith("nvidia-")]  # those of another torch
    hashed = [p for p in pins.values() if "sha256:" in p.value]
    assert len(hashed) == len(pins) - 3
    assert pins["deepspeed"].value.startswith("0.17.5 sha256:")
    (problem,) = unverified.problems(pins.values())
    assert not problem.fatal
    assert "torch 2.5.1+rocm6.1, torch" in problem.message


def test_isambard_for_its_own_architecture(tools: Tools) -> None:
    options = Options(first=("torch==2.10.0",))
    compiled = ("flash-attn==2.6.3", "transformer-engine-torch==1.12.0", "deepspeed==0.16.5")
    pins = resolved(tools, "aarch64", "3.12", environment("uv", "3.12", ISAMBARD, compiled, options))
    assert {"uv", "torch", "flash-attn", "transformer-engine-torch", "deepspeed"} <= set(pins)
    assert pins["torch"].value.count("sha256:") == 1


def test_leonardo_with_what_it_compiles(tools: Tools) -> None:
    options = Options(first=("torch==2.9.0",))
    compiled = ("causal-conv1d==1.5.3.post1", "mamba-ssm==2.2.5")  # 1.5.3 is a tag and no release
    pins = resolved(tools, "x86_64", "3.11", environment("venv", "3.11", LEONARDO, compiled, options))
    assert {"causal-conv1d", "mamba-ssm", "torch", "ninja"} <= set(pins)
    assert pins["transformers"].value.startswith("4.57.5 sha256:")


def test_a_version_that_was_never_there(tools: Tools) -> None:
    spec = environment("venv", "3.11", (), ("mamba-ssm==99.0",), Options())
    with pytest.raises(ConfigError, match=r"no index has the source of mamba-ssm 99\.0; there is \d"):
        resolved(tools, "x86_64", "3.11", spec)
