"""exec, shell and run --here inside CSCS's Container Engine, on the twin's compute nodes."""

from __future__ import annotations

import re

import pytest

from tests.e2e.terminal import typed
from tests.twin.fixtures import Start
from tests.twin.user import EXAMPLE, User

pytestmark = pytest.mark.twin


@pytest.fixture(scope="module")
def user(twin: Start) -> User:
    """Alice on Alps, whose image carries a mark."""
    alps = twin("alps")
    user = User(alps, folder="nodes")
    alps.sh(f"{EXAMPLE}/image.sh {user.folder}/image.sqsh")
    text = (EXAMPLE / "edf.toml").read_text().replace("IMAGE", f"{user.folder}/image.sqsh")
    account = f'time  = "5m"\naccount = "{alps.site.overlay.account}"'
    user.put("run.toml", text.replace('time  = "5m"', account).replace('"edf"\ncluster', '"here"\ncluster'))
    return user


def test_exec_runs_inside_and_returns_its_code(user: User) -> None:
    line = 'echo "$SLURM_JOB_PARTITION $AWKWARD"; ls -d /etc/slurm 2>&1; exit 6'
    done = user.hpctrain("exec", "run.toml", "--", "bash", "-c", line)
    assert done.returncode == 6, done.stdout + done.stderr
    assert done.stdout.startswith("normal a b, 'c' \"d\" $HOME `id` \\ é\n")


def test_a_shell_is_inside_and_ends_with_its_allocation(user: User) -> None:
    argv = user.twin.inside(("hpctrain", "shell", "run.toml"), "alice", cwd=user.folder)
    lines = ['echo "<$SLURMD_NODENAME $NCCL_CROSS_NIC>"', "exit 3"]
    code, shown = typed(argv, lines, cwd="/", env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TERM": "xterm"})
    assert code == 3, shown
    # The hook's own value: outside of the engine it is another one.
    assert re.search(r"<nid00500[12] 0>", shown), shown
    assert user.twin.sh("squeue -h --me") == ""


def test_run_here_takes_the_allocation_around_it(user: User) -> None:
    ask = ("salloc", "-Q", "-A", user.twin.site.overlay.account, "-N2", "-t5", "--gpus-per-node=4")
    done = user.twin.run(
        *ask, "hpctrain", "run", "run.toml", "--here", user="alice", cwd=user.folder, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = user.status()
    assert found["state"] == "done"
    assert all(row["job"] is None for row in found["steps"])
    logs = user.twin.sh(f"cat {found['path']}/logs/train.rank*.log")
    assert len(re.findall(r'^\["/usr", true', logs, re.M)) >= 2
