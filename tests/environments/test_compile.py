"""A real C extension: fetched where the network is, compiled without it, kept, built anew when it must be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from hpctrain.errors import ConfigError, StepFailed
from hpctrain.hooks.marker import hookimpl
from hpctrain.model.cluster import Modules, Place
from hpctrain.model.layer import Layer
from hpctrain.model.plan import Plan
from hpctrain.model.run import Environment, Package, RunSpec
from hpctrain.model.step import Need, Pin, Step
from hpctrain.model.words import Raw
from hpctrain.run.system.tools import Tools
from hpctrain_job import exit_codes
from hpctrain_job.tree import digest
from hpctrain_plugins.environments import venv
from hpctrain_plugins.environments.wheels.options import Built
from tests.defaults.rig import World, cluster, plan
from tests.environments import stone
from tests.environments.small_wheel import wheel

HERE = os.uname().machine
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
ON = cluster(
    Place(name="login", provides=(Need.NETWORK,), here=True, source="doc"),
    Place(name="compute", provides=(Need.TARGET, Need.GPU), here=True, source="doc"),
    arch=HERE,
)


class NoRoute:
    """Compute steps run where there is no network at all, as on a compute node."""

    @hookimpl
    def surround(self, step: Step) -> Layer | None:
        return Layer(wrap=("unshare", "-rn")) if Need.TARGET in step.needs else None


class Dies:
    """One step is killed in the middle."""

    def __init__(self, step: str) -> None:
        self.step = step

    @hookimpl
    def surround(self, step: Step) -> Layer | None:
        kill = Raw('mkdir -p "$WORK/half"; kill -KILL $$')
        return Layer(task=(kill,)) if step.name == self.step else None


@pytest.fixture
def quarry(shelf: Path) -> Path:
    """Beside alpha and beta: the source of stone, and chisel, which it is built with."""
    stone.archive(shelf)
    for version in ("1.0", "2.0"):
        wheel(shelf, "alpha", version)
    wheel(shelf, "chisel", "1.0", code='FLAG = "-O1"\n')
    return shelf


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / "files").mkdir()
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return World(tmp_path / "fs", tmp_path / "files", env={"PATH": path, "PIP_NO_INDEX": "1"})


def asked(shelf: Path, *packages: str, compile: object = "stone==1.0", **built: Any) -> RunSpec:  # noqa: A002
    package = Package.parse(compile) if isinstance(compile, str) else compile
    built = {"against": ("alpha",), **built}
    options = venv.Options(build=(), find_links=(str(shelf),), builds={"stone": Built(**built)})
    env = Environment(
        use="venv",
        python=PYTHON,
        packages=tuple(map(Package.parse, packages)),
        compile=(package,),  # type: ignore[arg-type]
        options=options,
    )
    return RunSpec(name="r", cluster="toy", environment=env)


def pinned(shelf: Path, torch: str = "1.0") -> tuple[Pin, ...]:
    """What lock would say of `asked`, which takes it seconds."""
    files = {n: f"{n}-1.0-py3-none-any.whl" for n in ("beta", "chisel")}
    files |= {"alpha": f"alpha-{torch}-py3-none-any.whl", "stone": "stone-1.0.tar.gz"}
    versions = {"alpha": torch}
    pins = [
        Pin(n, "pypi", f"{versions.get(n, '1.0')} sha256:{digest(shelf / file)}") for n, file in files.items()
    ]
    return (*pins, Pin("stone", "build", "chisel>=1"))


def locked(spec: RunSpec) -> tuple[Pin, ...]:
    """Pins as on the cluster's own computer, for its architecture."""
    offline = Tools(environ={**os.environ, "PIP_NO_INDEX": "1"})
    return tuple(venv.pin(run=spec, cluster=cluster(), tools=offline))


def ready(spec: RunSpec, pins: tuple[Pin, ...], *more: object) -> Plan:
    return plan(spec, ON, venv, *more, pins=pins)


def weight(world: World, made: Plan) -> str:
    """What the compiled function says from inside the environment."""
    python = world.published(made, "env") / "bin/python"
    argv = (python, "-c", "import stone; print(stone.weight())")
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


def key(made: Plan, step: str = "compile-stone") -> str:
    planned = made.step_named(step)
    assert planned is not None
    assert planned.step.makes is not None
    return planned.step.makes.key


def failure(world: World, made: Plan) -> str:
    with pytest.raises(StepFailed) as caught:
        world.execute(made)
    return "\n".join((*caught.value.problems[0].notes, caught.value.problems[0].message))


def test_what_it_is_built_with_is_locked_without_running_it(quarry: Path) -> None:
    pins = {(p.kind, p.name): p.value for p in locked(asked(quarry))}
    # chisel builds it, beta is what it needs when it runs, alpha is what beta needs.
    assert {name for kind, name in pins if kind == "pypi"} == {"stone", "chisel", "beta", "alpha"}
    assert pins["build", "stone"] == "chisel>=1"
    assert pins["pypi", "stone"] == f"1.0 sha256:{digest(quarry / 'stone-1.0.tar.gz')}"


def test_compiled_without_network_and_kept(quarry: Path, world: World) -> None:
    spec = asked(quarry, "alpha", env={"STONE_FLAVOUR": "${HPC_STEP}"})
    made = ready(spec, pinned(quarry), NoRoute())
    assert [(s.name, s.step.place) for s in made.steps] == [
        ("wheels", "login"),
        ("sources", "login"),
        ("compile-stone", "compute"),
        ("env", "compute"),
    ]
    world.execute(made)
    assert weight(world, made) == "1.0 compile-stone"
    kept = list(world.published(made, "compile-stone").iterdir())
    assert [p.name for p in kept] == [f"stone-1.0-py3-none-linux_{HERE}.whl"]
    # The second run builds nothing; one with another package besides takes the wheel as it is.
    again = world.execute(made)
    assert all("exists: " in again.log(s.name).read_text() for s in made.steps)
    wheel(quarry, "gamma", "1.0")
    more = asked(quarry, "alpha", "gamma", env={"STONE_FLAVOUR": "${HPC_STEP}"})
    gamma = Pin("gamma", "pypi", f"1.0 sha256:{digest(quarry / 'gamma-1.0-py3-none-any.whl')}")
    other = ready(more, (*pinned(quarry), gamma), NoRoute())
    assert key(other) == key(made)
    assert key(other, "env") != key(made, "env")
    log = world.execute(other).log("compile-stone").read_text()
    assert "exists: " in log
    assert weight(world, other) == "1.0 compile-stone"


def test_a_flipped_bit_in_a_kept_wheel_is_named_and_built_again(quarry: Path, world: World) -> None:
    spec = asked(quarry, "alpha")
    made = ready(spec, pinned(quarry))
    world.execute(made)
    (kept,) = world.published(made, "compile-stone").iterdir()
    raw = bytearray(kept.read_bytes())
    raw[len(raw) // 2] ^= 1
    kept.write_bytes(bytes(raw))
    world.published(made, "env").unlink()
    said = world.execute(made).log("compile-stone").read_text()
    assert f"{kept.name}: FAILED" in said
    assert "is made anew" in said
    assert weight(world, made) == "1.0 plain"


@pytest.mark.parametrize("tool", ["urllib", "socket", "git"])
def test_a_build_that_asks_for_the_network_fails(quarry: Path, world: World, tool: str) -> None:
    spec = asked(quarry, "alpha", env={"STONE_FETCHES": tool})
    said = failure(world, ready(spec, pinned(quarry)))
    assert "the build of stone asked for the network" in said
    assert f"exit code {exit_codes.NOT_ALLOWED}" in said, "75 would be a training that saved"
    assert ("(192.0.2.1:80)" in said) is (tool == "socket")
    assert "_FORCE_BUILD" in said
    assert not list(world.root("env").glob("wheel-stone*"))


@pytest.mark.parametrize(
    ("built", "says"),
    [
        ({"env": {"CC": "/no/such/cc"}}, "stone is compiled, and cc is not here"),
        ({"programs": ("nvcc-of-nowhere",)}, "stone is compiled, and nvcc-of-nowhere is not here"),
    ],
)
def test_a_missing_compiler_is_said_before_anything_is_built(
    quarry: Path, world: World, built: dict[str, Any], says: str
) -> None:
    spec = asked(quarry, "alpha", **built)
    said = failure(world, ready(spec, pinned(quarry)))
    assert says in said
    assert "[modules] build" in said


def test_another_torch_means_another_wheel(quarry: Path, world: World) -> None:
    one, two = asked(quarry, "alpha==1.0"), asked(quarry, "alpha==2.0")
    wheel(quarry, "beta", "1.0", code="")
    first, second = ready(one, pinned(quarry)), ready(two, pinned(quarry, "2.0"))
    assert key(first) != key(second)
    world.execute(first)
    world.execute(second)
    assert (weight(world, first), weight(world, second)) == ("1.0 plain", "2.0 plain")


def test_what_the_key_of_a_wheel_follows(quarry: Path) -> None:
    spec = asked(quarry, "alpha==1.0")
    pins = pinned(quarry)

    def of(spec: RunSpec = spec, *more: Pin, on: Any = ON) -> str:
        return key(plan(spec, on, venv, pins=(*pins, *more)))

    base = of()
    assert of(spec, Pin("beta", "rebuild", "1")) == base
    modules = attrs.evolve(ON, modules=Modules(source="doc", build=("gcc/12.2.0",)))
    others = {
        of(spec, Pin("stone", "rebuild", "1")),
        of(spec, Pin("stone", "rebuild", "2")),
        of(spec, Pin("alpha", "rebuild", "1")),
        of(asked(quarry, "alpha==1.0", env={"MAX_JOBS": "2"})),
        of(on=modules),
        of(on=attrs.evolve(ON, arch="riscv64")),
    }
    assert len({base, *others}) == 7


def test_rebuild_reaches_the_environment(quarry: Path) -> None:
    spec = asked(quarry, "alpha==1.0")
    pins = pinned(quarry)
    envs = {
        key(ready(spec, (*pins, *more)), "env")
        for more in ((), (Pin("stone", "rebuild", "1"),), (Pin("beta", "rebuild", "1"),))
    }
    assert len(envs) == 3


def test_code_from_a_folder_is_compiled_too(quarry: Path, world: World) -> None:
    tree = stone.tree(world.files / "mine")
    own = Package(name="stone", path="mine", sha256=digest(tree))
    spec = asked(quarry, "alpha==1.0", "chisel", compile=own)
    made = ready(spec, pinned(quarry), NoRoute())
    world.execute(made)
    assert weight(world, made) == "1.0 plain"
    assert digest(tree) == own.sha256


def test_a_build_requirement_that_is_not_there_is_named(quarry: Path, world: World) -> None:
    tree = stone.tree(world.files / "mine")
    own = Package(name="stone", path="mine", sha256=digest(tree))
    spec = asked(quarry, "alpha==1.0", compile=own)  # nobody says that it needs chisel
    pins = tuple(p for p in pinned(quarry) if p.name not in ("chisel", "stone"))
    assert "'chisel" in failure(world, ready(spec, pins))


def test_killed_in_the_middle_leaves_nothing_and_goes_on(quarry: Path, world: World) -> None:
    spec = asked(quarry, "alpha")
    pins = pinned(quarry)
    for step in ("compile-stone", "env"):
        failure(world, ready(spec, pins, Dies(step)))
        assert not world.published(ready(spec, pins), step).exists()
    made = ready(spec, pins)
    world.execute(made)
    assert weight(world, made) == "1.0 plain"


@pytest.mark.parametrize(
    ("package", "code"),
    [
        (Package.parse("stone>=1"), "no-version"),
        (Package(git="https://example.org/stone"), "no-name"),
        (Package.parse("nothing-of-this-name==9"), "no-source"),
    ],
)
def test_what_cannot_be_compiled_is_refused_early(quarry: Path, package: Package, code: str) -> None:
    with pytest.raises(ConfigError) as caught:
        locked(asked(quarry, compile=package))
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == (code, "environment.compile")


def test_an_archive_that_changed_is_refused(quarry: Path, world: World) -> None:
    spec = asked(quarry, "alpha")
    pins = pinned(quarry)
    (quarry / "stone-1.0.tar.gz").unlink()
    stone.archive(quarry, "1.1").rename(quarry / "stone-1.0.tar.gz")
    said = failure(world, ready(spec, pins))
    assert "stone-1.0.tar.gz has the hash" in said
