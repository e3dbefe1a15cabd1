"""Images from the twin's registry under real names: apptainer by architecture, podman, both by digest."""

from __future__ import annotations

import pytest

from tests.twin import rootfs
from tests.twin.fixtures import Start
from tests.twin.services.inside import image, ready

pytestmark = [pytest.mark.twin, pytest.mark.slow]

NAME = "nvcr.io/nvidia/pytorch:25.06-py3"


@pytest.mark.parametrize("arch", ["arm64", "amd64"])
def test_apptainer_pulls_for_an_architecture(arch: str, twin: Start) -> None:
    which = rootfs.apptainer(rootfs.path())
    if which.startswith("stand-in"):
        pytest.skip(f"apptainer: {which}")
    olivia = ready(twin("olivia"))
    image(olivia, NAME)
    file = f"{arch}.sif"
    olivia.sh(f"cd && apptainer pull --force --arch {arch} {file} docker://{NAME} 2>&1")
    said = olivia.sh(f"cd && apptainer inspect --json {file}")
    assert f'"org.label-schema.build-arch": "{arch}"' in said or f'"architecture": "{arch}"' in said
    assert (
        olivia.sh(f"cd && apptainer sif dump 4 {file} >{arch}.sqsh && unsquashfs -cat {arch}.sqsh marker")
        == f"{arch}\n"
    )


def test_podman_pulls_by_tag_and_by_digest(twin: Start) -> None:
    alps = ready(twin("alps"))
    digest = image(alps, NAME)
    podman = "export XDG_RUNTIME_DIR=/dev/shm/$USER/run; mkdir -p -m700 $XDG_RUNTIME_DIR; "
    podman += "podman --root /dev/shm/$USER/pulled"
    name = NAME.partition(":")[0]
    node = alps.site.hosts[0].name
    alps.sh(f"{podman} pull -q --arch arm64 {name}@{digest}", node=node)
    show = "image inspect -f '{{.Architecture}} {{.Digest}}'"
    assert alps.sh(f"{podman} {show} {name}@{digest}", node=node).split()[0] == "arm64"
    alps.sh(f"{podman} pull -q {NAME}", node=node)
    assert alps.sh(f"{podman} {show} {NAME}", node=node).split()[0] == "amd64"


def test_a_name_that_is_not_there_is_refused(twin: Start) -> None:
    alps = ready(twin("alps"))
    image(alps, NAME)
    line = "podman --root /dev/shm/$USER/pulled pull -q nvcr.io/nvidia/none:1"
    done = alps.run("bash", "-c", line, user="alice", node=alps.site.hosts[0].name)
    assert done.returncode != 0
    assert "manifest unknown" in done.stderr
