"""What goes wrong with images and overlays on Olivia: a clean end with its cause, nothing half there."""

from __future__ import annotations

import random
import re
import time

import pytest

from hpctrain_plugins.environments.apptainer.rules import RULES
from tests.twin.faults import fault
from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.test_overlay import OVERLAYS, POOL, Trainee, overlays, prepared

pytestmark = [pytest.mark.twin, pytest.mark.slow]


@pytest.fixture(scope="module")
def olivia(twin: Start) -> Twin:
    """Olivia with a base image and wheels that everybody may read."""
    return prepared(twin("olivia"))


def named(twin: Twin, name: str, user: str = "alice", **change: str) -> Trainee:
    """A run with an overlay of its own name."""
    find = {"find_links": f'name = "{name}"\nfind_links'}
    return Trainee(twin, user, folder=name, **find, **change)


def left(twin: Twin, name: str) -> str:
    """Whatever lies of this overlay, hidden folders too."""
    return twin.sh(f"ls -A {OVERLAYS} 2>/dev/null | grep {name} || true")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--set", "resources.nodes=9", "--set", "resources.gpus=null"), "nodes"),
        (("--set", "resources.time='8d'"), "time"),
        (("--set", 'environment.apptainer.image="pytorch"'), "image"),
        (("--set", 'environment.apptainer.overlay="zip"'), "squashfs"),
    ],
)
def test_what_can_be_known_is_refused_before_the_queue(
    olivia: Twin, words: tuple[str, ...], code: str
) -> None:
    alice = named(olivia, "early")
    if words[1] == "resources.nodes=9":
        text = olivia.sh(f"cat {alice.folder}/run.toml").replace("gpus = 1", "nodes = 9")
        alice.put("run.toml", text)
        words = ()
    done = alice.hpctrain("submit", "run.toml", *words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert code in done.stderr
    assert not olivia.sh("squeue -h --me")


def test_a_missing_account_is_asked_for(olivia: Twin) -> None:
    alice = named(olivia, "account")
    text = olivia.sh(f"cat {alice.folder}/run.toml").replace('account = "nn9999k"', "")
    alice.put("run.toml", text)
    done = alice.hpctrain("submit", "run.toml")
    assert done.returncode == 2
    assert "--account" in done.stderr


@pytest.mark.parametrize("what", ["bytes", "inodes"])
def test_a_full_file_system_ends_the_build_and_leaves_nothing(olivia: Twin, what: str) -> None:
    alice = named(olivia, f"full-{what}")
    fault(olivia, "quota-fill", "env", what)
    try:
        alice.submit()
        found = alice.until("failed", seconds=90)
    finally:
        fault(olivia, "quota-free", "env")
    assert "No space left on device" in olivia.sh(f"cat {found['path']}/logs/*.log")
    assert left(olivia, f"full-{what}") == ""
    if what == "bytes":
        assert alice.trained()["state"] == "done"


def test_an_image_that_went_after_the_plan_is_named(olivia: Twin) -> None:
    olivia.sh(f"cp {POOL}/base.sqsh {POOL}/going.sqsh")
    alice = named(olivia, "going", **{"base.sqsh": "going.sqsh"})
    alice.put("run.toml", olivia.sh(f"cat {alice.folder}/run.toml").replace("base.sqsh", "going.sqsh"))
    olivia.sh(f"mv {POOL}/going.sqsh {POOL}/gone.sqsh")
    alice.submit()
    found = alice.until("failed", seconds=120)
    assert f"{POOL}/going.sqsh" in olivia.sh(f"cat {found['path']}/logs/*.log")
    olivia.sh(f"mv {POOL}/gone.sqsh {POOL}/going.sqsh")
    assert alice.trained()["state"] == "done"


def test_a_build_that_is_killed_leaves_nothing_and_the_next_one_works(olivia: Twin) -> None:
    alice = named(olivia, "killed")
    found = alice.submit()
    found = alice.until("running", seconds=120)
    job = alice.step(found, "env")["job"]
    alice.twin.sh(
        f"for i in $(seq 100); do squeue -h -j {job} -o %t | grep -q R && break; sleep .2; done; true"
    )
    olivia.sh(f"scancel --full -s KILL {job}; sleep 2")
    alice.until("failed", "cancelled", seconds=120)
    assert not [n for n in overlays(olivia) if n.startswith("killed")]
    assert alice.trained()["state"] == "done"


def test_two_members_who_build_one_overlay_share_it_although_one_is_killed(olivia: Twin) -> None:
    name = "both"
    alice, bob = (named(olivia, name, user) for user in ("alice", "bob"))
    job = alice.step(alice.submit(), "env")["job"]
    bob.submit()
    time.sleep(random.uniform(0, 10))
    olivia.run("scancel", "--full", "-s", "KILL", str(job))
    assert bob.until("done", seconds=180)["state"] == "done"
    assert alice.until("done", "failed", "cancelled", seconds=180)["state"]
    assert alice.made()["env"] == "exists"
    assert alice.trained()["state"] == "done"
    assert len([n for n in overlays(olivia) if n.startswith(name)]) == 1


def test_an_image_for_other_machines_is_named_by_its_first_job(olivia: Twin) -> None:
    other = (
        "d=$(mktemp -d) && cd $d && mkdir -p r/bin && cp /bin/busybox r/bin/sh "
        "&& ln -s sh r/bin/python3 && printf '\\267' | dd of=r/bin/sh bs=1 seek=18 conv=notrunc status=none "
        f"&& mksquashfs r {POOL}/other.sqsh -quiet -no-progress -noappend"
    )
    olivia.sh(other)
    alice = named(olivia, "other")
    alice.put("run.toml", olivia.sh(f"cat {alice.folder}/run.toml").replace("base.sqsh", "other.sqsh"))
    alice.submit()
    found = alice.until("failed", seconds=60)
    assert alice.step(found, "inspect")["state"] == "failed"
    log = olivia.sh(f"cat {found['path']}/logs/*.log")
    assert "image targets 'arm64', cannot run on 'amd64'" in log
    assert next(rule.name for rule in RULES if re.search(rule.pattern, log)) == "image-arch"


def test_two_nodes_see_the_host_s_fabric(olivia: Twin) -> None:
    roots = (
        "/opt/cray/libfabric/2.3.1/lib",
        "/cluster/software/NCCL/2.30.4",
        "/cluster/software/aws-ofi-nccl/lib",
    )
    for host in ("", *(h.name for h in olivia.site.hosts)):
        olivia.run("mkdir", "-p", *roots, node=host)
        olivia.run("touch", f"{roots[0]}/from-the-host", "/usr/lib64/libcxi.so.1", node=host)
    alice = named(olivia, "fabric")
    text = olivia.sh(f"cat {alice.folder}/run.toml").replace("gpus = 1", "nodes = 2")
    program = 'import os; print(os.listdir("/opt/libfabric/lib"), os.environ["LD_LIBRARY_PATH"])'
    lines = [
        f'argv = ["python", "-c", \'{program}\']' if x.startswith("argv") else x for x in text.splitlines()
    ]
    alice.put("run.toml", "\n".join(lines))
    found = alice.trained()
    said = olivia.sh(f"cat {found['path']}/logs/train.rank0.log")
    assert "'from-the-host'" in said
    assert "] /opt/libfabric/lib:/opt/nccl/lib" in said
    assert "--network=disable_rdzv_get" in olivia.sh(f"cat {found['path']}/steps/train/job.sh")
