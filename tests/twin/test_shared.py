"""What one user makes, another of the project uses: the plan says so, and refuses it when it must."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.twin import rootfs
from tests.twin.alps import Builder, prepared
from tests.twin.faults import fault
from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.services.inside import python_image, ready, shadow
from tests.twin.user import User

pytestmark = [pytest.mark.twin, pytest.mark.slow]

REFERENCE = "nvcr.io/nvidia/pytorch:25.06-py3"
SITE = 'arch = "x86_64"\n[hardware]\ngpus_per_node = 1\n'
RUN = f"""
name = "shared"
cluster = "olivia"
[resources]
gpus = 1
time = "5m"
[environment]
packages = ["twin-pure==1.0"]
[environment.apptainer]
image = "{REFERENCE}"
name = "shared"
[train]
use = "command"
[train.command]
argv = ["python", "-c", "import sys, twin_pure; print('twin-pure', twin_pure.VERSION, sys.prefix)"]
"""
OPENED = """chgrp g999 $SCRATCH && chmod g+x $SCRATCH
mkdir $SCRATCH/shared && chgrp g999 $SCRATCH/shared && chmod 2750 $SCRATCH/shared
"""
"""As the README has it."""
ALPS = """[cluster.alps.storage.images]
path   = "PATH"
share  = "project"
owners = ["@{account}"]
"""


class Member(User):
    """A member of the project with the run file of all; a site file says the twin's architecture."""

    def __init__(self, twin: Twin, name: str) -> None:
        super().__init__(twin, name, folder="shared")
        self.put("site.toml", SITE)
        self.put("run.toml", RUN)

    def hpctrain(self, *words: str, **fields: Any) -> Any:
        return super().hpctrain(*words, **fields, env={"HPCTRAIN_SITE": f"{self.folder}/site.toml"})


def survey(who: User) -> dict[str, Any]:
    """What the plan knows of this machine."""
    account = who.twin.site.overlay.account
    done = who.hpctrain("plan", "run.toml", "--account", account, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["survey"]
    return found


def refused(who: User) -> str:
    """What `submit` says of files that it does not use; nothing is queued."""
    done = who.hpctrain("submit", "run.toml", "--account", who.twin.site.overlay.account)
    assert done.returncode == 2, done.stdout + done.stderr
    assert not who.twin.sh("squeue -h --me", user=who.name)
    return " ".join(done.stderr.split())


@pytest.fixture(scope="module")
def olivia(twin: Start) -> Twin:
    """Olivia with the base in its registry, and alice's run in image and overlay."""
    if rootfs.apptainer(rootfs.path()).startswith("stand-in"):
        pytest.skip("apptainer is a stand-in here")
    one = ready(twin("olivia"))
    shadow(one)
    python_image(one, REFERENCE)
    alice = Member(one, "alice")
    alice.submit()
    assert alice.until("done", seconds=240)["state"] == "done"
    return one


def test_bob_uses_alice_s_image_and_overlay_and_the_plan_says_so(olivia: Twin) -> None:
    bob = Member(olivia, "bob")
    bob.put("run.lock.toml", olivia.sh("cat ~/shared/run.lock.toml"))
    found = survey(bob)
    assert found["owners"] == dict.fromkeys(("image", "inspect", "env", "verify"), "alice")
    assert found["refusals"] == {}
    bob.submit()
    ended = bob.until("done", seconds=240)
    assert "twin-pure 1.0 /user-software" in olivia.sh(f"cat {ended['path']}/logs/train.log", user="bob")
    assert [row["step"] for row in ended["steps"] if row.get("job")] == ["train"]


@pytest.mark.parametrize("step", ["image", "env"])
def test_a_flipped_byte_and_a_stranger_are_refused_before_the_queue(olivia: Twin, step: str) -> None:
    bob = Member(olivia, "bob")
    bob.put("run.lock.toml", olivia.sh("cat ~/shared/run.lock.toml"))
    # Compared and found whole: the next plan must not trust that.
    assert survey(bob)["owners"][step] == "alice"
    plan = json.loads(bob.hpctrain("plan", "run.toml", "--account", "nn9999k", "--json").stdout)["plan"]
    (makes,) = (row["step"]["makes"] for row in plan["steps"] if row["step"]["name"] == step)
    role, path = makes["loc"]["loc"]
    link = f"{olivia.site.fill(olivia.site.template(olivia.site.cluster.storage[role].path), 'bob')}/{path}"
    fault(olivia, "corrupt", link)
    try:
        assert f"{link} is damaged: content is not what its manifest says" in refused(bob)
        assert f'[cluster.olivia] {role} = "/path"' in refused(bob)
        assert survey(bob)["refusals"][step]["owner"] == "alice"
    finally:
        fault(olivia, "corrupt", link)
    assert olivia.run("chown", "-h", "daemon", link).returncode == 0
    try:
        assert f"{link} belongs to daemon, who is not among the owners you accept" in refused(bob)
        assert f'[cluster.olivia.storage.{role}] owners = ["daemon"]' in refused(bob)
        assert survey(bob)["refusals"][step]["owner"] == "daemon"
    finally:
        assert olivia.run("chown", "-h", "alice", link).returncode == 0
    assert survey(bob)["owners"][step] == "alice"


def test_on_alps_two_users_share_images_by_their_settings(twin: Start) -> None:
    alps = prepared(twin("alps"))
    scratch, account = alps.site.fill(alps.site.template("${SCRATCH}"), "alice"), alps.site.overlay.account
    alps.sh(OPENED.replace("g999", account).replace("$SCRATCH", scratch))
    alice, bob = (Builder(alps, "shared", name) for name in ("alice", "bob"))
    for who in (alice, bob):
        home = alps.site.home(who.name)
        alps.sh(f"mkdir -p {home}/.config/hpctrain", user=who.name)
        settings = ALPS.replace("PATH", f"{scratch}/shared/images")
        alps.write(f"{home}/.config/hpctrain/settings.toml", settings, user=who.name)
    alice.submit()
    assert alice.until("done", seconds=240)["state"] == "done"
    bob.put("run.lock.toml", alps.sh(f"cat {alice.folder}/run.lock.toml"))
    assert survey(bob)["owners"]["image"] == "alice"
    bob.submit()
    ended = bob.until("done", seconds=240)
    assert "twin-pure 1.0" in alps.sh(f"cat {ended['path']}/logs/train.log", user="bob")
    (name,) = alps.sh(f"cd {scratch}/shared/images && ls -d *.sqsh").split()
    fault(alps, "corrupt", f"{scratch}/shared/images/{name}")
    assert f"{name} is damaged" in refused(bob)
