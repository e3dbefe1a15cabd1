"""The pins of the clusters' own documents still resolve, for their machines; asks the network's index."""

from __future__ import annotations

import os
import shutil
import urllib.request
from importlib import import_module
from pathlib import Path

import pytest

from hpctrain.errors import ConfigError
from hpctrain.lock import path_of, read, request_hash, text
from hpctrain.model.run import Environment, Package, RunSpec
from hpctrain.model.step import Pin
from hpctrain.run.system.tools import Tools
from hpctrain.session import Session
from hpctrain_job import sdist
from hpctrain_plugins.environments import venv
from hpctrain_plugins.environments.wheels import unverified
from hpctrain_plugins.environments.wheels.options import Options
from hpctrain_plugins.environments.wheels.packages_spec import name_of, normal
from tests.clusters import HOMES
from tests.conftest import needs
from tests.defaults.rig import cluster

USES = {"frontier": "conda", "isambard": "uv", "leonardo": "venv"}
LEONARDO = ("transformers==4.57.5", "datasets>=4.0.0", "torchdata", "pyyaml", "ninja", "packaging", "einops")


@pytest.fixture
def tools() -> Tools:
    said = "no package index answers here, so that the documents' pins cannot be looked up"
    needs("index", index_answers(), said)
    return Tools()


def index_answers() -> bool:
    """Whether one of the indexes that pip is told of on this computer can be reached."""
    return any(map(_answers, sdist.configured(os.environ).indexes))


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
    return {p.name: p for p in venv.pin(run=run, cluster=cluster(arch=arch), tools=tools) if p.kind == "pypi"}


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


EXAMPLES = {
    "frontier": ("tutorial", "lora-2x8", "lora-128x8"),
    "isambard": ("neox-pretrain", "two-nodes"),
    "leonardo": ("nemotron-lora", "lora-1gpu"),
}
"""The documents' own versions first, where those still resolve, then current ones."""


@pytest.mark.parametrize(
    ("cluster_name", "name"), [(cluster, name) for cluster, names in EXAMPLES.items() for name in names]
)
def test_an_example_is_locked_for_its_machine(
    cluster_name: str, name: str, tools: Tools, tmp_path: Path
) -> None:
    """By the index that is reached here; nobody answers for torch's vendor, as nobody would behind a wall."""
    for path in (HOMES[cluster_name] / "examples").iterdir():
        (shutil.copytree if path.is_dir() else shutil.copy)(path, tmp_path / path.name)
    file = tmp_path / f"{name}.toml"
    wall = f'environment.{USES[cluster_name]}.first_index="http://127.0.0.1:9/whl"'
    session = Session(file, on=cluster_name, sets=[wall], environ={"USER": "ada", "HOME": str(tmp_path)})
    module = import_module(f"hpctrain_plugins.environments.{session.run.environment.use}")
    pins = tuple(module.pin(run=session.run, cluster=session.cluster, tools=tools))
    path_of(file).write_text(text(file, {cluster_name: (request_hash(session.run), pins)}))
    kept = read(file, cluster_name, session.run)
    assert (set(kept.pins), kept.stale) == (set(pins), False)
    wheels = [p for p in pins if p.kind == "pypi"]
    assert len(wheels) > 10
    unhashed = {p.name for p in wheels if "sha256:" not in p.value}
    assert unhashed == {name_of(r) for r in session.run.environment.options.first}
    assert all(p.value.endswith(" unverified") for p in wheels if p.name in unhashed)
    exact = {p.name: p.value.split()[0] for p in wheels}
    environment = session.run.environment
    for package in (*environment.packages, *environment.compile):
        wanted = package.requirement.partition("==")[2]
        assert not wanted or exact[normal(name_of(package.requirement))].partition("+")[0] == wanted
    (problem,) = unverified.problems(pins)
    assert "hash not verified here: torch " in problem.message
    assert not problem.fatal


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
