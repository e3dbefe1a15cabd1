"""conda on Frontier as the documents use it: the command line is a stand-in, what it installs is real."""

from __future__ import annotations

import sys

import pytest

from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.services.inside import ready

pytestmark = [pytest.mark.twin, pytest.mark.slow]

LOAD = 'module load miniforge3/23.11.0 && . "$(conda info --base)/etc/profile.d/conda.sh" && cd $MEMBERWORK'
SHORT = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture(scope="module")
def frontier(twin: Start) -> Twin:
    """Frontier with an environment in alice's scratch, as the documents make it."""
    one = ready(twin("frontier"))
    one.sh(f"{LOAD} && conda create -y -p $PWD/envs/ft python={SHORT} pip")
    return one


def test_an_environment_is_itself(frontier: Twin) -> None:
    line = "conda activate $PWD/envs/ft && which python && python -c 'import sys; print(sys.prefix)' && "
    line += (
        "python -m venv --without-pip v && echo $CONDA_PREFIX $CONDA_SHLVL; conda deactivate; which python"
    )
    said = frontier.sh(f"{LOAD} && {line}").split()
    prefix = f"{frontier.sh('echo -n $MEMBERWORK')}/envs/ft"
    assert said == [f"{prefix}/bin/python", prefix, prefix, "1", "/sw/frontier/miniforge3/23.11.0/bin/python"]


def test_it_stays_active_when_the_module_goes(frontier: Twin) -> None:
    line = "conda activate $PWD/envs/ft && module unload miniforge3/23.11.0 && command -v python"
    assert frontier.sh(f"{LOAD} && {line}").endswith("/envs/ft/bin/python\n")
    said = frontier.sh(
        "module load miniforge3/23.11.0; module unload miniforge3/23.11.0; echo ${CONDA_EXE-none}"
    )
    assert said == "none\n"


def test_pip_installs_into_it(frontier: Twin) -> None:
    line = "conda activate $PWD/envs/ft && pip install -q --index-url https://pypi.twin/simple twin-pure"
    frontier.sh(f"{LOAD} && {line} && python -c 'import twin_pure'")
    assert "pip " in frontier.sh(f"{LOAD} && conda list -p $PWD/envs/ft")


def test_source_activate_on_a_node_without_network(frontier: Twin) -> None:
    line = f"{LOAD} && source activate $PWD/envs/ft && python -c 'import sys; print(sys.prefix)'"
    done = frontier.run("bash", "-c", line, user="alice", node="frontier00001")
    assert done.stdout.strip().endswith("/envs/ft"), done.stderr
    line = f"{LOAD} && conda create -y -p $PWD/envs/other python"
    done = frontier.run(
        "bash", "-c", f"export CONDA_PKGS_DIRS=/tmp/pkgs; {line}", user="alice", node="frontier00001"
    )
    assert done.returncode == 1
    assert "CondaHTTPError: HTTP 000 CONNECTION FAILED" in done.stderr


def test_more_is_installed_and_what_is_not_there_is_named(frontier: Twin) -> None:
    frontier.sh(f"{LOAD} && conda create -y -n small python && conda install -y -n small setuptools")
    assert "setuptools" in frontier.sh(f"{LOAD} && conda list -n small")
    done = frontier.run("bash", "-c", f"{LOAD} && conda create -y -n old python=3.6", user="alice")
    assert done.returncode == 1
    assert "PackagesNotFoundError" in done.stderr
    done = frontier.run("bash", "-c", f"{LOAD} && conda build .", user="alice")
    assert done.returncode != 0
    assert "build" in done.stderr


def test_what_the_login_node_downloaded_is_unpacked_without_a_network(frontier: Twin) -> None:
    house = "$MEMBERWORK/house"
    fetch = f"CONDA_PKGS_DIRS={house}/conda conda create --yes --quiet --download-only --override-channels"
    frontier.sh(f"{LOAD} && {fetch} --channel=conda-forge -p {house}/.prefix python={SHORT} pip")
    files = f"find {house}/conda -maxdepth 1 -name '*.tar.bz2'"
    assert len(frontier.sh(files).split()) == 2
    make = "conda create --yes --quiet --offline --prefix $MEMBERWORK/envs/offline {} +"
    line = f"{LOAD} && {files} -exec env CONDA_PKGS_DIRS=$MEMBERWORK/pkgs {make}"
    done = frontier.run("bash", "-c", line, user="alice", node="frontier00001")
    assert done.returncode == 0, done.stderr
    assert "pip" in frontier.sh("$MEMBERWORK/envs/offline/bin/python -m pip --version", node="frontier00001")


def test_run_without_a_shell_function(frontier: Twin) -> None:
    line = "module load miniforge3/23.11.0-0 && conda run -p $MEMBERWORK/envs/ft "
    line += "python -c 'import sys; print(sys.prefix)'"
    assert frontier.sh(line).strip().endswith("/envs/ft")
