"""Real environments: resolved, built, published through a link, entered."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from hpctrain.errors import ConfigError, StepFailed
from hpctrain.hooks.marker import hookimpl
from hpctrain.model.cluster import Cluster, Place
from hpctrain.model.layer import How, Layer
from hpctrain.model.plan import Plan
from hpctrain.model.run import Environment, Package, RunSpec
from hpctrain.model.step import Need, Pin, Step
from hpctrain.model.words import Cmd, Var
from hpctrain.run.system.tools import Tools
from hpctrain_job.tree import digest
from hpctrain_plugins.environments import venv
from hpctrain_plugins.environments.wheels import packages_spec
from tests.defaults.rig import World, cluster, plan
from tests.environments.small_wheel import wheel

TWO_PLACES = (
    Place(name="login", provides=(Need.NETWORK,), here=True, source="doc"),
    Place(name="compute", provides=(Need.TARGET, Need.GPU), here=True, source="doc"),
)
HERE = os.uname().machine
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


OFFLINE: dict[str, Any] = {"build": ()}
"""The code below builds itself, so that no tool is needed from an index."""


class Inside:
    """One more step, inside the environment."""

    @hookimpl(wrapper=True)
    def build_env(self) -> Generator[None, tuple[Step, ...], tuple[Step, ...]]:
        answer = yield
        code = "import os, sys, mine; print(sys.prefix, mine.ANSWER); print(os.environ['VIRTUAL_ENV'])"
        needs = frozenset({Need.TARGET})
        return (
            *answer,
            Step(name="look", commands=(Cmd.of("python", "-c", code),), inside=True, needs=needs),
        )


def own_code(folder: Path) -> tuple[Package, ...]:
    """The user's package, in a folder, with a build back end of its own."""
    folder.mkdir()
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    source = Path(__file__).with_name("small_wheel.py").read_text()
    build = (
        "def build_wheel(folder, *_):\n"
        "    Path('litter').touch()\n"
        "    return wheel(Path(folder), 'mine', '1.0', code='ANSWER = 42\\n').name\n"
    )
    (folder / "backend.py").write_text(source + build)
    return (Package(name="mine", path=folder.name, sha256=digest(folder)),)


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / "files").mkdir()
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return World(tmp_path / "fs", tmp_path / "files", env={"PATH": path, "PIP_NO_INDEX": "1"})


def asked(*packages: str, own: tuple[Package, ...] = (), python: str = "", **options: object) -> RunSpec:
    every = (*(Package.parse(text) for text in packages), *own)
    env = Environment(use="venv", packages=every, python=python, options=venv.Options(**options))  # type: ignore[arg-type]
    return RunSpec(name="r", cluster="toy", environment=env)


def locked(spec: RunSpec, on: Cluster | None = None) -> tuple[Pin, ...]:
    offline = Tools(environ={**os.environ, "PIP_NO_INDEX": "1"})
    return tuple(venv.pin(run=spec, cluster=on or cluster(), tools=offline))


def made(spec: RunSpec, pins: tuple[Pin, ...], on: Cluster | None = None, *more: object) -> Plan:
    return plan(spec, on or cluster(), venv, *more, pins=pins)


def versions(pins: tuple[Pin, ...]) -> dict[str, str]:
    return {p.name: p.value.split()[0] for p in pins if p.kind == "pypi"}


def pinned(shelf: Path, *names: str) -> tuple[Pin, ...]:
    """The pins of version 1.0 of these wheels, and of alpha and beta where none is named."""
    return tuple(
        Pin(n, "pypi", f"1.0 sha256:{digest(shelf / f'{n}-1.0-py3-none-any.whl')}")
        for n in names or ("alpha", "beta")
    )


def out(*argv: str | Path) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"})
    return done.stdout.strip()


def test_what_pip_would_take_is_what_is_pinned(shelf: Path) -> None:
    pins = locked(asked("alpha", "beta", find_links=(str(shelf),)))
    assert set(pins) == {Pin("python", "python", PYTHON), *pinned(shelf, "alpha", "beta")}


def test_the_environment_lives_at_its_link(shelf: Path, world: World) -> None:
    own = own_code(world.files / "mine")
    ready = made(asked("beta", own=own, **OFFLINE, find_links=(str(shelf),)), pinned(shelf), None, Inside())
    assert [(s.name, s.step.place) for s in ready.steps] == [("env", "here"), ("look", "here")]
    directory = world.execute(ready)
    link = world.published(ready, "env")
    assert link.is_symlink()
    told = out(
        link / "bin/python", "-c", "import sys, beta; print(sys.prefix, sys.base_prefix != sys.prefix)"
    )
    assert told == f"{link} True"
    # Scripts name the path where the environment was built, which stays.
    assert out(link / "bin/alpha-say") == str(link.resolve())
    # A command inside finds it first on its path, the user's own code included.
    assert directory.log("look").read_text().splitlines()[-2:] == [f"{link} 42", str(link)]
    assert digest(world.files / "mine") == own[0].sha256


def test_two_places_first_fetch_and_then_build_without_network(shelf: Path, world: World) -> None:
    on = cluster(*TWO_PLACES, arch=HERE)
    own = own_code(world.files / "mine")
    spec = asked("beta", own=own, python=PYTHON, **OFFLINE, find_links=(str(shelf),))
    ready = made(spec, pinned(shelf), on)
    places = [(s.name, s.step.place) for s in ready.steps]
    assert places == [("wheels", "login"), ("sources", "login"), ("env", "compute")]
    assert ready.steps[2].step.needs == {Need.TARGET}
    assert [a.step for a in ready.steps[2].step.after] == ["wheels", "sources"]
    world.execute(ready)
    held = sorted(p.name for p in world.published(ready, "wheels").iterdir())
    assert held == ["alpha-1.0-py3-none-any.whl", "beta-1.0-py3-none-any.whl"]
    told = out(world.published(ready, "env") / "bin/python", "-c", "import beta, mine; print(mine.ANSWER)")
    assert told == "42"


def test_a_package_that_does_not_import_ends_the_build(shelf: Path, world: World) -> None:
    wheel(shelf, "broken", "1.0", code="import nothing_of_this_name\n")
    spec = asked("broken", find_links=(str(shelf),))
    ready = made(spec, pinned(shelf, "broken"))
    with pytest.raises(StepFailed) as caught:
        world.execute(ready)
    assert any("broken cannot be imported: ModuleNotFoundError" in n for n in caught.value.problems[0].notes)
    assert not world.published(ready, "env").exists()


def test_another_file_than_the_pinned_one_is_refused(shelf: Path, world: World) -> None:
    ready = made(asked("alpha==1.0", find_links=(str(shelf),)), pinned(shelf, "alpha"))
    wheel(shelf, "alpha", "1.0", code="EVIL = True\n")
    with pytest.raises(StepFailed) as caught:
        world.execute(ready)
    assert "DO NOT MATCH THE HASHES" in "".join(caught.value.problems[0].notes)


def test_the_build_that_comes_first_decides(shelf: Path, tmp_path: Path) -> None:
    special = wheel(tmp_path / "special", "alpha", "1.0+cpu")
    wheel(shelf, "alpha", "1.0+zeta")
    (tmp_path / "index/alpha").mkdir(parents=True)
    (tmp_path / "index/alpha/index.html").write_text(f'<a href="{special.as_uri()}">{special.name}</a>')
    (tmp_path / "empty").mkdir()
    spec = asked(
        "beta",
        first=("alpha==1.0",),
        first_index=(tmp_path / "index").as_uri(),
        index_url=(tmp_path / "empty").as_uri(),
        find_links=(str(shelf),),
    )
    pins = tuple(venv.pin(run=spec, cluster=cluster(), tools=Tools()))
    assert versions(pins) == {"alpha": "1.0+cpu", "beta": "1.0"}


def test_what_does_not_exist_is_a_clear_error(shelf: Path) -> None:
    with pytest.raises(ConfigError, match="no index that was asked has nothing-of") as caught:
        locked(asked("nothing-of-this-name==9", find_links=(str(shelf),)))
    (problem,) = caught.value.problems
    assert problem.where == "environment.packages"
    assert any("nothing-of-this-name" in note for note in problem.notes)


def test_a_python_that_is_not_here() -> None:
    with pytest.raises(ConfigError, match=r"there is no python3\.99") as caught:
        locked(asked("alpha", python="3.99"))
    assert caught.value.problems[0].where == "environment.python"


@pytest.mark.parametrize(
    ("text", "code"),
    [("-e .\n", "requirements-option"), ("alpha @ https://x/alpha.whl\n", "requirement-address")],
)
def test_a_requirements_file_is_a_list_of_names(text: str, code: str) -> None:
    env = Environment(use="venv", requirements="r.txt", options=venv.Options())
    spec = RunSpec(name="r", cluster="toy", environment=env, texts={"r.txt": text})
    with pytest.raises(ConfigError) as caught:
        locked(spec)
    assert caught.value.problems[0].code == code


def test_a_requirements_file_is_read() -> None:
    env = Environment(use="venv", requirements="r.txt", options=venv.Options())
    text = "# ours\nbeta  # and what it needs\n\nalpha>=1\n"
    spec = RunSpec(name="r", cluster="toy", environment=env, texts={"r.txt": text})
    assert packages_spec.read(spec, cluster()).wheels == ("beta", "alpha>=1")


def test_another_machine_needs_its_python() -> None:
    with pytest.raises(ConfigError, match="needs to know the Python"):
        locked(asked("six"), cluster(arch="aarch64"))


def test_another_machine_is_resolved_for_and_not_this_one(shelf: Path) -> None:
    wheel(shelf, "far", "2.0", tag="cp310-cp310-manylinux_2_28_x86_64")
    wheel(shelf, "far", "1.0", tag="cp310-cp310-manylinux_2_28_aarch64")
    spec = asked("far", "beta", python="3.10", find_links=(str(shelf),))
    offline = Tools(environ={**os.environ, "UV_NO_INDEX": "1"})
    pins = tuple(venv.pin(run=spec, cluster=cluster(arch="aarch64"), tools=offline))
    assert versions(pins) == {"alpha": "1.0", "beta": "1.0", "far": "1.0"}


def test_the_key_follows_what_goes_in_and_nothing_else() -> None:
    def key(spec: RunSpec, *pins: Pin, arch: str = "x86_64") -> str:
        makes = made(spec, pins, cluster(arch=arch)).steps[-1].step.makes
        assert makes is not None
        return makes.key

    one, two = Pin("six", "pypi", "1.0"), Pin("six", "pypi", "2.0")
    base = key(asked("six"), one)
    assert key(asked("six"), one) == base
    assert key(asked("six", verify=False), one) == base
    assert key(asked("six"), one, Pin("org/m@main", "hub", "a" * 40)) == base
    others = {
        key(asked("six"), two),
        key(asked("six"), one, arch="aarch64"),
        key(asked("six", python="3.12"), one),
        key(asked("six", system_site=True), one),
        key(asked("six", own=(Package(path="x", sha256="1"),)), one),
    }
    assert len({base, *others}) == 6


def test_entering_keeps_other_pythons_out() -> None:
    layer: Layer = venv.enter_env(run=asked("six"), cluster=cluster(), pins=())
    by_name = {v.name: v for v in layer.env}
    assert by_name["PATH"].how is How.PREPEND
    assert by_name["PYTHONHOME"].how is How.UNSET
    assert all(v.why for v in layer.env)


def test_the_python_of_the_environment() -> None:
    def first(spec: RunSpec, arch: str) -> object:
        command = made(spec, (), cluster(arch=arch)).steps[-1].step.commands[0]
        return command.argv[0]  # type: ignore[union-attr]

    assert first(asked("six"), "native") == Var("HPC_PYTHON")
    assert first(asked("six"), "x86_64") == "python3"
    assert first(asked("six", python="3.12"), "x86_64") == "python3.12"
