"""uv and conda beside venv: the same lists and the same house, another way to begin."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import attrs
import pytest

from hpctrain.errors import ConfigError, StepFailed
from hpctrain.model.cluster import Place
from hpctrain.model.layer import How, Layer
from hpctrain.model.plan import Plan
from hpctrain.model.run import Environment, Package, RunSpec
from hpctrain.model.step import Need, Pin
from hpctrain.model.words import Loc
from hpctrain_job.tree import digest
from hpctrain_plugins.environments import conda, uv, venv
from hpctrain_plugins.environments.wheels import options
from tests.defaults.rig import World, cluster, plan
from tests.environments.conftest import uv_wheel

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
ONE = cluster(
    Place(name="login", provides=(Need.NETWORK, Need.TARGET), here=True, source="doc"),
    arch=os.uname().machine,
)
TWO = cluster(
    Place(name="login", provides=(Need.NETWORK,), here=True, source="doc"),
    Place(name="compute", provides=(Need.TARGET,), here=True, source="doc"),
    arch=os.uname().machine,
)
STAND_IN = """\
#!/bin/bash
# What `conda create` does for our purposes: a prefix with a Python, or packages kept for later.
set -e
echo "$*" >>"$CALLS"
while (($#)); do
  case $1 in
    --prefix) prefix=$2; shift ;;
    --download-only) download=1 ;;
    *.conda) [[ -e $1 ]] || exit 9 ;;
  esac
  shift
done
if [[ -n ${download:-} ]]; then
  mkdir -p "$CONDA_PKGS_DIRS" && touch "$CONDA_PKGS_DIRS/python-3.conda"
else
  [[ ! -e $prefix ]] || { echo "DirectoryNotACondaEnvironmentError: $prefix" >&2; exit 1; }
  PYTHON -m venv "$prefix"
  mkdir -p "$prefix/etc/conda/activate.d"
  echo 'export SEEN_BY_ACTIVATE=$NOBODY_SET_THIS:$CONDA_PREFIX' >"$prefix/etc/conda/activate.d/a.sh"
fi
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / "files").mkdir()
    (tmp_path / "bin").mkdir()
    stand_in = tmp_path / "bin/conda"
    stand_in.write_text(STAND_IN.replace("PYTHON -m", f"{sys.executable} -m"))
    stand_in.chmod(0o755)
    path = os.pathsep.join((str(tmp_path / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]))
    env = {"PATH": path, "PIP_NO_INDEX": "1", "CALLS": str(tmp_path / "calls")}
    return World(tmp_path / "fs", tmp_path / "files", env=env)


def asked(use: str, module: object, shelf: Path, **more: object) -> RunSpec:
    made = module.Options(find_links=(str(shelf),), build=(), **more)  # type: ignore[attr-defined]
    env = Environment(use=use, python=PYTHON, packages=(Package.parse("beta"),), options=made)
    return RunSpec(name="r", cluster="toy", environment=env)


def pinned(shelf: Path) -> tuple[Pin, ...]:
    names = ("alpha", "beta")
    return tuple(Pin(n, "pypi", f"1.0 sha256:{digest(shelf / f'{n}-1.0-py3-none-any.whl')}") for n in names)


def answer(python: Path) -> str:
    argv = (python, "-c", "import sys, beta; print(sys.prefix)")
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(("on", "steps"), [(ONE, ["env"]), (TWO, ["wheels", "env"])])
def test_conda_makes_the_prefix_and_pip_fills_it(
    shelf: Path, world: World, on: object, steps: list[str]
) -> None:
    spec = asked("conda", conda, shelf, specs=("mpi4py=4.0",))
    made = plan(spec, on, conda, pins=pinned(shelf))  # type: ignore[arg-type]
    assert [s.name for s in made.steps] == steps
    world.execute(made)
    link = world.published(made, "env")
    assert answer(link / "bin/python") == str(link)
    first, *rest = (world.folder.parent / "calls").read_text().splitlines()
    assert f"--override-channels --channel=conda-forge python={PYTHON} pip mpi4py=4.0" in first
    assert ("--download-only" in first) is bool(rest)
    assert all("--offline" in line and "python-3.conda" in line for line in rest)
    assert not list(world.root("env").glob(".hpc-*/content.pkgs"))


def test_conda_is_entered_by_its_path() -> None:
    spec = asked("conda", conda, Path("/shelf"))
    layer: Layer = conda.enter_env(run=spec, cluster=ONE, pins=())
    by_name = {v.name: v for v in layer.env}
    assert by_name["PATH"].how is How.PREPEND
    assert by_name["VIRTUAL_ENV"].how is How.UNSET
    prefix = by_name["CONDA_PREFIX"].value
    assert isinstance(prefix, Loc)
    assert by_name["PATH"].value == prefix / "bin"
    assert not layer.task
    entered = conda.enter_env(run=asked("conda", conda, Path("/shelf"), activate=True), cluster=ONE, pins=())
    assert entered.task == (conda.SCRIPTS,)


def test_activation_scripts_see_their_prefix(tmp_path: Path) -> None:
    scripts = tmp_path / "etc/conda/activate.d"
    scripts.mkdir(parents=True)
    (scripts / "a.sh").write_text("export SEEN=$NOBODY_SET_THIS:$CONDA_PREFIX\n")
    script = f"set -euo pipefail\n{conda.SCRIPTS.text}\necho $SEEN\n"
    env = {"PATH": os.environ["PATH"], "CONDA_PREFIX": str(tmp_path)}
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == f":{tmp_path}\n"


def test_conda_needs_to_know_its_python() -> None:
    spec = RunSpec(name="r", cluster="toy", environment=Environment(use="conda", options=conda.Options()))
    with pytest.raises(ConfigError, match="which Python it installs"):
        conda.build_env(run=spec, cluster=ONE, pins=())


def test_no_conda_on_the_path_is_said(shelf: Path, world: World) -> None:
    spec = asked("conda", conda, shelf, program="no-such-conda")
    with pytest.raises(StepFailed) as caught:
        world.execute(plan(spec, ONE, conda, pins=pinned(shelf)))
    assert any("no-such-conda: command not found" in note for note in caught.value.problems[0].notes)


def test_uv_comes_from_the_house_and_fills_the_prefix(shelf: Path, world: World) -> None:
    uv_wheel(shelf)
    pins = (*pinned(shelf), Pin("uv", "pypi", f"1.0 sha256:{digest(shelf / 'uv-1.0-py3-none-any.whl')}"))
    made = plan(asked("uv", uv, shelf), ONE, uv, pins=pins)
    assert [s.name for s in made.steps] == ["wheels", "env"]  # also where one place has both
    world.execute(made)
    link = world.published(made, "env")
    assert answer(link / "bin/python") == str(link)
    assert not (link / ".uv").exists()
    assert (link / "bin/alpha-say").is_file()


def python_build(folder: Path) -> Path:
    """uv's list with one build of Python: a stand-in that starts the Python of the tests."""
    words = f'#!/bin/bash\nexec {sys.base_prefix}/bin/python{PYTHON} "$@"\n'.encode()
    archive, data = folder / "python.tar.gz", "_sysconfigdata__linux_x86_64-linux-gnu"
    with tarfile.open(archive, "w:gz") as file:
        for name, body in (
            (f"bin/python{PYTHON}", words),
            (
                f"lib/python{PYTHON}/{data}.py",
                b"# system configuration generated and used by the sysconfig module\nbuild_time_vars = {}\n",
            ),
        ):
            entry = tarfile.TarInfo(f"python/{name}")
            entry.size, entry.mode = len(body), 0o755
            file.addfile(entry, io.BytesIO(body))
    major, minor, patch = sys.version_info[:3]
    machine = {"family": os.uname().machine, "variant": None}
    names: dict[str, object] = {
        "name": "cpython",
        "arch": machine,
        "os": "linux",
        "libc": "gnu",
        "url": archive.as_uri(),
    }
    numbers = {"major": major, "minor": minor, "patch": patch}
    build = {**names, **numbers, "prerelease": "", "variant": None, "sha256": None}
    listed = folder / "builds.json"
    listed.write_text(json.dumps({f"cpython-{PYTHON}.{patch}-linux-{machine['family']}-gnu": build}))
    return listed


def keys(of: Plan) -> set[str]:
    """Of all that a plan makes."""
    return {row.step.makes.key for row in of.steps if row.step.makes}


def test_a_python_that_the_site_has_not_is_fetched_with_the_wheels(
    shelf: Path, world: World, tmp_path: Path
) -> None:
    uv_wheel(shelf)
    configuration = tmp_path / "config/uv/uv.toml"
    configuration.parent.mkdir(parents=True)
    configuration.write_text(f'python-downloads-json-url = "{python_build(tmp_path)}"\n')
    world = attrs.evolve(world, env={**world.env, "XDG_CONFIG_HOME": str(tmp_path / "config")})
    pins = (*pinned(shelf), Pin("uv", "pypi", f"1.0 sha256:{digest(shelf / 'uv-1.0-py3-none-any.whl')}"))
    made = plan(asked("uv", uv, shelf, own_python=True), TWO, uv, pins=pins)
    assert {"wheels", "env"} <= {step.name for step in made.steps}
    world.execute(made)
    link = world.published(made, "env")
    assert answer(link / "bin/python") == str(link)
    assert (link / f".python/bin/python{PYTHON}").is_file(), "the environment outlives the wheel house"
    assert list(world.root("env").glob(f"wheels-*/python/bin/python{PYTHON}"))
    sites_own = plan(asked("uv", uv, shelf), TWO, uv, pins=pins)
    assert keys(made).isdisjoint(keys(sites_own)), "an environment with another Python is another one"


def test_a_python_that_cannot_be_fetched_ends_the_step_with_the_way_out(
    shelf: Path, world: World, tmp_path: Path
) -> None:
    uv_wheel(shelf)
    listed = python_build(tmp_path)
    (tmp_path / "python.tar.gz").unlink()
    configuration = tmp_path / "config/uv/uv.toml"
    configuration.parent.mkdir(parents=True)
    configuration.write_text(f'python-downloads-json-url = "{listed}"\n')
    world = attrs.evolve(world, env={**world.env, "XDG_CONFIG_HOME": str(tmp_path / "config")})
    pins = (*pinned(shelf), Pin("uv", "pypi", f"1.0 sha256:{digest(shelf / 'uv-1.0-py3-none-any.whl')}"))
    with pytest.raises(StepFailed) as caught:
        world.execute(plan(asked("uv", uv, shelf, own_python=True), TWO, uv, pins=pins))
    notes = "\n".join(caught.value.problems[0].notes)
    assert f"uv brought no Python {PYTHON}" in notes
    assert "own_python = false" in notes
    assert not list(world.root("env").glob("wheels-*"))


def test_the_sites_own_program_comes_before_a_fetched_python() -> None:
    from hpctrain_plugins.environments.wheels import packages_spec

    spec = asked("uv", uv, Path("/shelf"), own_python=True, python="/opt/python")
    assert not packages_spec.read(spec, ONE).own_python
    fetched = packages_spec.read(asked("uv", uv, Path("/shelf"), own_python=True), ONE)
    assert fetched.own_python
    assert not fetched.native, "lock must not ask this computer for a Python of the version"


def test_uv_is_pinned_like_a_package() -> None:
    from hpctrain_plugins.environments.wheels import packages_spec, ways

    read = packages_spec.read(asked("uv", uv, Path("/shelf")), ONE, ways.Uv.program)
    assert "uv" in read.wheels


def test_the_three_have_the_same_keys() -> None:
    common = {a.name for a in attrs.fields(options.Options)}
    assert {a.name for a in attrs.fields(venv.Options)} == common
    assert {a.name for a in attrs.fields(uv.Options)} == common | {"own_python"}
    more = {"program", "channels", "specs", "activate"}
    assert {a.name for a in attrs.fields(conda.Options)} == common | more
