"""The wheels, not the tree: installed without an index on every Python, and used there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpctrain.versions import DISTRIBUTION
from tests.packaging.conftest import Make
from tests.packaging.environment import Environment
from tests.packaging.places import CLUSTERS, OWN, ROOT, VERSIONS, pythons

TESTING = ("hypothesis", "pytest", "pytest-timeout")
DISTRIBUTIONS, MEGABYTES, PROGRAM_MEGABYTES = 16, 20, 50
EXAMPLE = "import hpc_frontier as c, pathlib; print(*pathlib.Path(c.__file__).parent.glob('examples/*.toml'))"
PURE = ("hooks", "plan", "render", "runfile", "ui")


def _example(environment: Environment) -> str:
    return environment.run("python", "-c", EXAMPLE).stdout.split()[0]


def _digests(environment: Environment) -> dict[str, str]:
    done = environment.run("hpctrain", "plan", _example(environment), "--on", "all", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: said.get("digest", "") for name, said in json.loads(done.stdout)["plans"].items()}


@pytest.mark.parametrize("version", VERSIONS)
def test_everything_works_on(make: Make, version: str) -> None:
    environment = make(version, "hpctrain[clusters]")
    assert environment.run("hpctrain", "--version").stdout == f"hpctrain {DISTRIBUTION}\n"
    helped = environment.run("hpctrain", "--help")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert "hpctrain demo" in helped.stdout
    listed = environment.run("hpctrain", "plugins", "--json")
    assert listed.returncode == 0, listed.stderr
    assert {f'"{name}"' for name in CLUSTERS} <= set(listed.stdout.replace(",", " ").split())
    digests = _digests(environment)
    assert set(digests) == {"local", *CLUSTERS}
    assert all(len(digest) == 64 for digest in digests.values())
    assert environment.pip("check").strip() == "No broken requirements found."


def test_plans_are_the_same_on_every_python(make: Make) -> None:
    found = {version: _digests(make(version, "hpctrain[clusters]")) for version in pythons()}
    assert len({tuple(sorted(digests.items())) for digests in found.values()}) == 1


@pytest.mark.parametrize("version", pythons())
def test_the_control_plane_is_small(make: Make, version: str) -> None:
    environment = make(version, "hpctrain[clusters]")
    names = [path.name for path in environment.sites()]
    assert len(names) <= DISTRIBUTIONS, names
    # uv is one program of 39 MB, which clusters bring to resolve for their own architecture.
    uv = sum((environment.bin / name).stat().st_size for name in ("uv", "uvx")) / 1e6
    assert environment.megabytes() <= MEGABYTES  # of site-packages, where the program is not
    assert uv <= PROGRAM_MEGABYTES
    alone = make(version, "hpctrain[local]")
    assert not (alone.bin / "uv").exists()


@pytest.mark.parametrize("version", [version for version in VERSIONS if version != OWN])
def test_the_pure_parts_pass_their_tests_on(make: Make, version: str) -> None:
    """On the Python that runs this test they are run by the suite itself."""
    environment = make(version, "hpctrain[clusters]", *TESTING)
    folders = [f"tests/{name}" for name in PURE]
    # Several Pythons must not share what they remember of examples and failures in the checkout.
    alone = ("-p", "no:cacheprovider", "--hypothesis-profile=ci")
    done = environment.run("python", "-m", "pytest", "-q", "-m", "not budget", *alone, *folders, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    assert " passed" in done.stdout


def test_one_cluster_alone(make: Make) -> None:
    environment = make(OWN, "hpctrain[frontier]")
    names = {path.name.partition("-")[0] for path in environment.sites()}
    ours = {name for name in names if name.startswith("hpctrain")}
    assert ours == {"hpctrain", "hpctrain_frontier", "hpctrain_plugins"}
    done = environment.run("hpctrain", "plan", _example(environment))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "on frontier" in done.stdout
    other = environment.run("hpctrain", "plan", _example(environment), "--on", "alps")
    assert other.returncode == 2
    assert "pip install 'hpctrain[alps]'" in other.stderr


def test_core_alone_says_what_is_missing(make: Make, tmp_path: Path) -> None:
    environment = make(OWN, "hpctrain")
    (tmp_path / "run.toml").write_text('name = "x"\ncluster = "frontier"\n')
    done = environment.run("hpctrain", "plan", "run.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert 'no cluster "frontier"' in done.stderr
    assert "pip install 'hpctrain[frontier]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_module_runs_as_the_program_does(make: Make) -> None:
    environment = make(OWN, "hpctrain[clusters]")
    both = [
        environment.run(*argv) for argv in (("hpctrain", "--help"), ("python", "-m", "hpctrain", "--help"))
    ]
    assert both[0].stdout == both[1].stdout != ""
    wrong = environment.run("python", "-m", "hpctrain", "plam")
    assert wrong.returncode == 2
