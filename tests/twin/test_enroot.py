"""The images of Alps's documents: podman builds in a job, enroot makes a file of it, the job runs in it."""

from __future__ import annotations

import subprocess

import pytest

from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.services.inside import python_image, ready, shadow

pytestmark = [pytest.mark.twin, pytest.mark.slow]

BASE = "nvcr.io/nvidia/pytorch:24.04-py3"
STORAGE = """[storage]
  driver = "overlay"
  runroot = "/dev/shm/$USER/runroot"
  graphroot = "/dev/shm/$USER/root"

[storage.options.overlay]
  mount_program = "/usr/bin/fuse-overlayfs-1.13"
"""
FILE = f'FROM {BASE}\nENV MADE="by podman"\nRUN pip install --break-system-packages twin-pure\n'
ENTER = "export XDG_RUNTIME_DIR=/dev/shm/$USER/run; mkdir -p -m 700 $XDG_RUNTIME_DIR; cd; "


@pytest.fixture(scope="module")
def alps(twin: Start) -> Twin:
    """Alps, with podman set up as the document says and the base image in the registry."""
    one = ready(twin("alps"))
    python_image(one, BASE)
    shadow(one)
    home = one.site.home("alice")
    one.sh("mkdir -p ~/.config/containers ~/nanotron ~/.edf; rm -f ~/*.sqsh")
    one.write(f"{home}/.config/containers/storage.conf", STORAGE)
    one.write(f"{home}/nanotron/Dockerfile", FILE)
    return one


def job(twin: Twin, line: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A shell line in a job of alice's."""
    ask = ("-A", twin.site.overlay.account, "-t", "3", "-N1", "-n1", *words)
    return twin.run("srun", *ask, "/bin/sh", "-c", line, user="alice", timeout=120)


def test_build_import_and_run(alps: Twin) -> None:
    build = (
        "podman build -q -t nanotron:v1.0 nanotron && enroot import -x mount -o n.sqsh podman://nanotron:v1.0"
    )
    done = job(alps, ENTER + build)
    assert done.returncode == 0, done.stderr
    assert alps.sh("cd && unsquashfs -cat n.sqsh etc/environment").splitlines()[-1] == "MADE=by podman"
    home = alps.site.home("alice")
    alps.write(f"{home}/.edf/n.toml", f'image = "{home}/n.sqsh"\n')
    done = job(
        alps, "cat /marker; python3 -c 'import twin_pure as t; print(t.VERSION)'; id -u", "--environment=n"
    )
    assert done.stdout.split() == ["amd64", "1.1", "61001"], done.stderr


def test_a_registry_s_image_for_an_architecture(alps: Twin) -> None:
    done = job(alps, f"{ENTER}enroot import -a arm64 docker://{BASE.replace('/', '#', 1)}")
    assert done.returncode == 0, done.stderr
    assert alps.sh("cd && unsquashfs -cat nvcr.io+nvidia+pytorch+24.04-py3.sqsh marker") == "arm64\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("-o there.sqsh podman://nanotron:v1.0", "File already exists: there.sqsh"),
        ("-o x.sqsh podman://nobody:1", "No such image: nobody:1"),
        ("-o no/where.sqsh podman://nanotron:v1.0", "No such image: nanotron:v1.0"),
        ("-o x.sqsh docker://nvcr.io#nvidia/none:1", "Could not fetch"),
        ("-x copy podman://x", "Invalid argument: -x copy"),
        ("-o x.sqsh nanotron", "Invalid argument: nanotron"),
    ],
)
def test_what_is_wrong_is_said(words: str, said: str, alps: Twin) -> None:
    line = f"{ENTER}touch there.sqsh; export HOME=/dev/shm/$USER/empty; mkdir -p $HOME; enroot import {words}"
    done = job(alps, line)
    assert done.returncode != 0
    assert said in done.stderr
    assert alps.run("test", "-e", f"{alps.site.home('alice')}/x.sqsh").returncode != 0
