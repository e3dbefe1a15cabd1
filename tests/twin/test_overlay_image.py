"""Images that Olivia pulls from a registry: by digest, for the nodes' architecture, never half there."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hpctrain_plugins.environments.apptainer.rules import RULES
from tests.twin import rootfs
from tests.twin.faults import fault
from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.services.inside import image, python_image, ready, shadow
from tests.twin.user import EXAMPLE, User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

REFERENCE = "nvcr.io/nvidia/small:1.0"
IMAGES = "/cluster/projects/nn9999k/hpctrain/containers"
SITE = """
ARCH
[hardware]
gpus_per_node = 1
"""
RUN = """
name = "NAME"
cluster = "olivia"
[resources]
gpus = 1
time = "5m"
account = "nn9999k"
[environment.apptainer]
image = "IMAGE"
[train]
use = "command"
[train.command]
argv = ["cat", "/marker"]
"""
PURE = """
[environment]
packages = ["twin-pure==1.0"]
"""
SMALL = f"""
[[ -e /srv/base.sqsh ]] || {EXAMPLE}/image.sh /srv/base.sqsh
unsquashfs -q -n -f -d /srv/small /srv/base.sqsh >/dev/null
rm -rf /srv/small/usr/lib/python3* /srv/small/usr/share
"""


class Puller(User):
    """Somebody whose image is in a registry; the twin's nodes are x86_64, and so the site file says."""

    def __init__(self, twin: Twin, name: str, arch: str = "x86_64", reference: str = REFERENCE) -> None:
        super().__init__(twin, folder=name)
        self.put("site.toml", SITE.replace("ARCH", f'arch = "{arch}"'))
        self.put("run.toml", RUN.replace("NAME", name).replace("IMAGE", reference))
        self.env = {"HPCTRAIN_SITE": f"{self.folder}/site.toml"}

    def hpctrain(self, *words: str, **fields: Any) -> Any:
        return super().hpctrain(*words, **{**fields, "env": self.env})


def known(log: str) -> str:
    """The rule that names what a log shows."""
    return next((rule.name for rule in RULES if re.search(rule.pattern, log)), "")


def images(twin: Twin, what: str = "*.sif") -> list[str]:
    """What lies where the project keeps its images."""
    return twin.sh(f"cd {IMAGES} 2>/dev/null && ls -d {what} 2>/dev/null || true").split()


@pytest.fixture(scope="module")
def olivia(twin: Start) -> Twin:
    """Olivia with a small image for two architectures in its registry."""
    if rootfs.apptainer(rootfs.path()).startswith("stand-in"):
        pytest.skip("apptainer is a stand-in here")
    one = ready(twin("olivia"))
    done = one.run("bash", "-euc", SMALL)
    assert done.returncode == 0, done.stderr
    image(one, REFERENCE, "/srv/small")
    return one


@pytest.fixture(scope="module")
def pulled(olivia: Twin) -> tuple[Puller, str]:
    """Alice after a run, and the name of her image."""
    alice = Puller(olivia, "pulled")
    alice.submit()
    found = alice.until("done")
    assert "amd64" in olivia.sh(f"cat {found['path']}/logs/train.log")
    (name,) = images(olivia, "small-*.sif")
    return alice, name


def test_an_image_is_pulled_by_digest_with_its_cache_outside_home(pulled: tuple[Puller, str]) -> None:
    alice, name = pulled
    assert name.startswith("small-1.0_")
    assert name.endswith("_amd64.sif")
    plan = alice.hpctrain("plan", "run.toml", "--json").stdout
    assert "small@sha256:" in plan
    home = alice.twin.site.home("alice")
    assert alice.twin.run("test", "-e", f"{home}/.apptainer/cache").returncode == 1
    left = alice.twin.sh(f'ls -A "$(dirname "$(readlink -f {IMAGES}/{name})")"')
    assert set(left.split()) == {"MANIFEST", "content"}


def test_an_image_that_was_removed_while_the_job_waited_is_named_and_pulled_anew(
    pulled: tuple[Puller, str],
) -> None:
    alice, name = pulled
    for host in alice.twin.site.hosts:
        fault(alice.twin, "drain", host.name)
    alice.submit()
    alice.twin.sh(f'rm -rf "$(dirname "$(readlink -f {IMAGES}/{name})")"')
    for host in alice.twin.site.hosts:
        fault(alice.twin, "resume", host.name)
    found = alice.until("failed")
    log = alice.twin.sh(f"cat {found['path']}/logs/train.log")
    assert f"{IMAGES}/{name} was there when the run was planned, and is gone" in log
    assert known(log) == "image-gone"
    alice.submit()
    assert alice.until("done")["state"] == "done"


def test_what_the_registry_calls_arm64_and_is_not_ends_before_the_queue(olivia: Twin) -> None:
    alice = Puller(olivia, "wrong", arch="aarch64")
    done = alice.hpctrain("submit", "run.toml")
    assert done.returncode != 0
    assert "the image is for x86_64, and the training nodes are aarch64" in done.stderr
    assert not [name for name in images(olivia) if name.endswith("_arm64.sif")]
    assert not olivia.sh("squeue -h --me")


def test_an_architecture_that_the_registry_lacks_is_refused_by_its_list(olivia: Twin) -> None:
    alice = Puller(olivia, "ppc", arch="ppc64le")
    done = alice.hpctrain("submit", "run.toml")
    assert done.returncode == 2
    assert "is made for amd64 and arm64, and the training nodes are ppc64le" in done.stderr


def test_a_login_session_that_dies_in_a_pull_leaves_nothing_visible(olivia: Twin) -> None:
    reference = REFERENCE.replace("small", "session")
    image(olivia, reference, "/srv/small")
    alice = Puller(olivia, "session", reference=reference)
    dead = (
        f"cd {alice.folder}; export HPCTRAIN_SITE=$PWD/site.toml; setsid hpctrain submit run.toml & "
        "for ((n = 0; n < 200; n++)); do pgrep -u alice -x apptainer >/dev/null && break; sleep .1; done; "
        "pgrep -u alice -x apptainer >/dev/null && kill -KILL -- -$(ps -o sid= -p $!)"
    )
    olivia.sh(dead)
    assert images(olivia, "session-*") == []
    alice.submit()
    assert alice.until("done")["state"] == "done"
    assert len(images(olivia, "session-*.sif")) == 1


def test_a_build_without_the_proxy_says_so_and_publishes_nothing(olivia: Twin) -> None:
    reference = "nvcr.io/nvidia/python:1.0"
    python_image(olivia, reference)
    shadow(olivia)
    alice = Puller(olivia, "proxy", reference=reference)
    text = RUN.replace("NAME", "proxy").replace('"IMAGE"', f'"{reference}"\nname = "proxy"')
    text = text.replace('["cat", "/marker"]', '["python", "-c", "import twin_pure"]')
    alice.put("run.toml", text.replace("[environment.app", PURE + "[environment.app"))
    fault(olivia, "proxy-cut")
    try:
        alice.submit()
        found = alice.until("failed")
    finally:
        fault(olivia, "proxy-mend")
    assert alice.step(found, "env")["state"] == "failed"
    assert known(olivia.sh(f"cat {found['path']}/logs/env.log")) == "proxy-down"
    assert olivia.sh("ls /cluster/projects/nn9999k/hpctrain/overlays/proxy_* 2>/dev/null || true") == ""
