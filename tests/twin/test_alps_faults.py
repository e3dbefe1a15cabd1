"""What goes wrong with images on Alps: refused before the queue, or a clean end and a next try that works."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hpctrain_plugins.environments.edf import rules
from tests.twin.alps import Builder, prepared
from tests.twin.faults import fault
from tests.twin.fixtures import Start
from tests.twin.life import Twin

pytestmark = [pytest.mark.twin, pytest.mark.slow]


@pytest.fixture(scope="module")
def alps(twin: Start) -> Twin:
    """Alps with a base in its registry and packages in its index."""
    return prepared(twin("alps"))


def left(one: Builder) -> str:
    """Whatever lies of this title among the images, hidden folders too."""
    return one.twin.sh(f"ls -A {one.images} 2>/dev/null | grep {one.title} || true")


def logs(one: Builder, found: dict[str, Any]) -> str:
    return one.twin.sh(f"cat {found['path']}/logs/*.log", user=one.name)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("--set", "resources.time='48h'"), "12h"),
        (("--set", 'environment.edf.base="pytorch"'), "names no image"),
        (("--set", 'environment.edf.mounts=["${MINE}/a:/b"]'), "nothing sets MINE"),
        (("--set", 'environment.edf.base="nvcr.io/nvidia/pytorch:99.99"'), "has no nvidia/pytorch:99.99"),
    ],
)
def test_what_can_be_known_is_refused_before_the_queue(
    alps: Twin, change: tuple[str, ...], code: str
) -> None:
    one = Builder(alps, "early")
    done = one.hpctrain("submit", "run.toml", *change)
    assert done.returncode == 2, done.stdout + done.stderr
    assert code in done.stderr
    assert not alps.sh("squeue -h --me")


def test_the_home_directory_is_no_target(alps: Twin) -> None:
    one = Builder(alps, "home")
    one.put("site.toml", '[storage.images]\npath = "/users/{user}/images"\n')
    done = one.hpctrain("submit", "run.toml", env={"HPCTRAIN_SITE": f"{one.folder}/site.toml"})
    assert done.returncode == 2
    assert "lies in the home directory" in done.stderr
    assert not alps.sh("squeue -h --me")


@pytest.mark.parametrize("what", ["bytes", "inodes"])
def test_a_full_file_system_ends_the_build_and_leaves_nothing(alps: Twin, what: str) -> None:
    one = Builder(alps, f"full{what}")
    alps.sh(f"mkdir -p {one.images}")
    fault(alps, "quota-fill", "images", what)
    try:
        one.submit()
        found = one.until("failed", seconds=90)
    finally:
        fault(alps, "quota-free", "images")
    assert "no space left on device" in logs(one, found).lower()  # tools spell it as they like
    assert left(one) == ""
    assert one.train()["state"] == "done"


def test_a_build_that_is_killed_leaves_nothing_and_the_next_one_works(alps: Twin) -> None:
    one = Builder(alps, "killed")
    found = one.submit()
    one.until("running", seconds=60)
    job = one.step(found, "image")["job"]
    alps.sh(f"for i in $(seq 150); do squeue -h -j {job} -o %t | grep -q R && break; sleep .2; done; sleep 1")
    alps.sh(f"scancel --full -s KILL {job}; sleep 2")
    one.until("failed", "cancelled", seconds=60)
    assert one.lies("killed-*.sqsh") == []
    assert one.train()["state"] == "done"


def test_two_jobs_that_build_one_image_share_it(alps: Twin) -> None:
    both = [Builder(alps, title) for title in ("both", "both-too")]
    for one in both:
        one.write(name="shared")
        one.submit()
    for one in both:
        assert one.until("done", seconds=240)["state"] == "done"
    assert len(both[0].lies("shared-*.sqsh")) == 1


def test_an_image_is_judged_again_in_every_job(alps: Twin) -> None:
    one = Builder(alps, "judged")
    one.train()
    (name,) = one.lies("judged-*.sqsh")
    fault(alps, "corrupt", f"{one.images}/{name}")
    one.submit()
    found = one.until("failed", seconds=90)
    said = logs(one, found)
    assert f"{one.images}/{name} is damaged and was set aside" in said
    assert [rule.name for rule in rules.RULES if re.search(rule.pattern, said)] == ["image-damaged"]
    assert one.train()["state"] == "done"
    assert name in one.lies("judged-*.sqsh")


def test_what_somebody_else_planted_is_not_used(alps: Twin) -> None:
    one = Builder(alps, "planted")
    assert one.hpctrain("lock", "run.toml").returncode == 0
    planned = one.hpctrain("plan", "run.toml").stdout.split()
    row = next(word for word in planned if word.startswith("planted-"))
    evil = "mkdir .hpc-x && echo evil >.hpc-x/content && chmod -R a+rX .hpc-x"
    plant = f"cd {one.images} && {evil} && ln -s .hpc-x/content {row} && chown -hR bob .hpc-x {row}"
    alps.sh(f"mkdir -p {one.images}")
    assert alps.run("bash", "-euc", plant).returncode == 0
    refused = one.hpctrain("submit", "run.toml")
    assert refused.returncode == 2
    assert f"{row} belongs to bob, who is not among the owners you accept" in " ".join(refused.stderr.split())
    alps.run("bash", "-euc", f"cd {one.images} && rm -r .hpc-x {row}")
    assert one.train()["state"] == "done"


def test_an_image_that_went_after_the_plan_is_named(alps: Twin) -> None:
    one = Builder(alps, "purged")
    one.train()
    (name,) = one.lies("purged-*.sqsh")
    ask = f"sbatch --parsable -A {alps.site.overlay.account} -N1 -t 5 -o /dev/null --wrap 'sleep 600'"
    blockers = alps.sh(f"for n in 1 2; do {ask}; done").split()
    one.submit()
    alps.sh(f"cd {one.images} && rm -rf $(dirname $(readlink {name}))")
    alps.sh(f"scancel {' '.join(blockers)}")
    found = one.until("failed", seconds=90)
    assert f"{name} was there when the run was planned, and is gone" in logs(one, found)
    assert one.train()["state"] == "done"
