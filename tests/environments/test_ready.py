"""Environments that exist already: entered and verified."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv as stdlib_venv
from pathlib import Path

import pytest

from hpctrain.errors import ConfigError, StepFailed
from hpctrain.model.layer import Bind, Module
from hpctrain.model.run import Environment, Package, RunSpec
from hpctrain.model.words import Join, Loc
from hpctrain_plugins.environments import ready
from tests.defaults.rig import World, cluster, plan


def asked(*packages: str, **options: object) -> RunSpec:
    named = tuple(map(Package.parse, packages))
    env = Environment(use="ready", packages=named, options=ready.Options(**options))  # type: ignore[arg-type]
    return RunSpec(name="r", cluster="toy", environment=env)


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / "files").mkdir()
    return World(tmp_path / "fs", tmp_path / "files")


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    folder = tmp_path / "my env"
    stdlib_venv.create(folder, symlinks=True)
    return folder


def test_a_prefix_is_entered_and_verified(prefix: Path, world: World) -> None:
    site = prefix / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    (site / "alpha.py").write_text("")
    (site / "alpha-1.0.dist-info").mkdir()
    (site / "alpha-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: alpha\nVersion: 1.0\n")
    (site / "alpha-1.0.dist-info/RECORD").write_text("alpha.py,,\n")
    made = plan(asked("alpha", prefix=str(prefix)), cluster(), ready)
    world.execute(made)
    python, *rest = world.published(made, "verify").read_text().splitlines()
    assert python.endswith(f" {prefix}/bin/python3")
    assert rest == ["alpha 1.0"]


def test_a_prefix_is_started_though_no_package_is_named(prefix: Path, world: World) -> None:
    made = plan(asked(prefix=str(prefix)), cluster(), ready)
    world.execute(made)
    assert f"{prefix}/bin/python3" in world.published(made, "verify").read_text()


def test_a_prefix_that_does_not_exist_fails_before_training(world: World) -> None:
    made = plan(asked(prefix="/nowhere/env"), cluster(), ready)
    with pytest.raises(StepFailed):
        world.execute(made)
    assert not world.published(made, "verify").exists()
    (log,) = world.folder.rglob("verify*.log")
    assert "'/nowhere/env/bin/python3': No such file or directory" in log.read_text()


def test_a_prefix_that_went_after_it_was_verified_is_missed_in_every_task(prefix: Path, world: World) -> None:
    directory = world.execute(plan(asked(prefix=str(prefix)), cluster(), ready))
    shutil.rmtree(prefix)
    script = directory.step("verify") / "task.sh"
    env = {"PATH": "/usr/bin:/bin", "HPC_RUN": str(directory.path), "HPC_STEP": "verify"}
    ended = subprocess.run(["bash", script], env=env, capture_output=True, text=True, check=False)
    assert ended.returncode
    assert f"'{prefix}/bin/python3': No such file or directory" in ended.stderr


def test_what_is_missing_is_said_before_training(prefix: Path, world: World) -> None:
    made = plan(asked("torch", prefix=str(prefix)), cluster(), ready)
    with pytest.raises(StepFailed):
        world.execute(made)
    assert not world.published(made, "verify").exists()


def test_an_image_is_entered_with_the_gpus_and_the_folders_of_the_run() -> None:
    on = cluster(gpu_kind="rocm", gpus_per_node=8)
    binds = (Bind(source=Loc("assets")), Bind(source=Loc("runs"), readonly=True))
    layer = ready.enter_env(run=asked(image="/x/y.sif"), cluster=on, binds=binds)
    assert layer.wrap == (
        *("apptainer", "exec", "--rocm"),
        Join("--bind=", Loc("assets")),
        Join("--bind=", Loc("runs"), ":", Loc("runs"), ":ro"),
        "/x/y.sif",
    )


def test_modules_alone() -> None:
    run = asked(modules=("PyTorch/2.6", "-cray-libsci"))
    layer = ready.enter_env(run=run, cluster=cluster(), binds=())
    assert layer.modules == (Module("PyTorch/2.6"), Module("cray-libsci", "unload"))
    assert ready.build_env(run=run, cluster=cluster(), pins=()) == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [({}, "nothing says which environment"), ({"prefix": "/a", "image": "/b"}, "cannot both be entered")],
)
def test_neither_or_both(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ready.build_env(run=asked(**options), cluster=cluster(), pins=())


def test_nothing_is_to_pin_where_no_package_is_named(prefix: Path) -> None:
    made = plan(asked(prefix=str(prefix)), cluster(arch="x86_64"), ready)
    assert "not-pinned" not in [p.code for p in made.problems]
