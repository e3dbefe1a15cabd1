"""The rig keeps to itself: it boots quickly, meets no other, and leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE, wait_for, within
from tests.rig.conf import USERS, Conf
from tests.rig.slurm import REPO, Rig

pytestmark = pytest.mark.slurm


@pytest.fixture
def second(slurm: Rig) -> Iterator[Rig]:
    """Another rig beside the session's."""
    rig = Rig(Conf(nodes=3, gpus=0))
    with within(5):
        rig.up()
    yield rig
    rig.down()


def test_two_at_once_never_meet(slurm: Rig, second: Rig) -> None:
    ours = second.run("sbatch", "--parsable", "-Jonlyhere", "--hold", "--wrap=true", cwd=second.home("alice"))
    assert ours.stdout.strip().isdigit()
    assert "onlyhere" not in slurm.run("squeue", "-hatall", "-o%j").stdout
    assert second.run("sinfo", "-h", "-pbatch", "-o%D").stdout.strip() == "3"
    assert slurm.run("sinfo", "-h", "-pbatch", "-o%D").stdout.strip() == "2"
    assert not second.run("ls", str(slurm.dir)).stdout


def test_an_ordinary_user_runs_on_both_nodes(slurm: Rig) -> None:
    for user, uid in USERS.items():
        done = slurm.run(
            "srun", "-N2", "bash", "-c", "echo $SLURMD_NODENAME $UID", user=user, cwd=slurm.home(user)
        )
        assert sorted(done.stdout.splitlines()) == [f"n1 {uid}", f"n2 {uid}"], done.stderr


def test_nothing_leads_out(slurm: Rig) -> None:
    done = slurm.run("ip", "-o", "link")
    assert [line.split(":")[1].strip() for line in done.stdout.splitlines()] == ["lo"]


def test_down_leaves_no_process_and_no_mount(slurm: Rig) -> None:
    before = Path("/proc/self/mounts").read_text()
    rig = Rig(Conf(nodes=1)).up()
    space = str(Path(f"/proc/{rig.pid}/ns/pid").readlink())
    assert Path("/proc/self/mounts").read_text() == before
    with within(5):
        rig.down()
    assert members(space) == []
    assert not rig.dir.exists()


def test_it_dies_with_a_killed_python(slurm: Rig) -> None:
    code = "from tests.rig.slurm import Rig; r = Rig().up(); print(r.pid, r.dir, flush=True); input()"
    child = subprocess.Popen(
        (sys.executable, "-c", code), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPO
    )
    assert child.stdout is not None
    pid, folder = child.stdout.readline().split()
    space = str(Path(f"/proc/{pid}/ns/pid").readlink())
    assert members(space)
    child.send_signal(signal.SIGKILL)
    child.wait(10 * PATIENCE)
    child.communicate()
    wait_for("the namespace's end", lambda: not members(space), 10)
    subprocess.run(("rm", "-r", "--", folder), check=True, timeout=10 * PATIENCE)


def test_a_rig_that_cannot_boot_says_why(slurm: Rig) -> None:
    with pytest.raises(RuntimeError, match="did not boot"):
        Rig(Conf(cgroup="Nonsense=1")).up()


def members(space: str) -> list[str]:
    """The processes in a pid namespace."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if str((entry / "ns/pid").readlink()) == space:
                    found.append(entry.name)
            except OSError:
                continue
    return found
