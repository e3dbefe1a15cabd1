"""Isambard's profile names a TMPDIR that may vanish on compute nodes; a job of ours does not use it.

A folder that is missing when a job begins Slurm makes, and one that nobody may write it replaces by
/tmp. What users met is one that is gone a second later: here the job itself takes it away, as the
site's clean-up does there.
"""

from __future__ import annotations

import shlex

import pytest

from tests.twin.fixtures import Start
from tests.twin.user import User

pytestmark = pytest.mark.twin
SITES_OWN = "/local/user/61001"
JOB = f'echo "$TMPDIR"; rmdir {SITES_OWN}; mktemp -d'


def test_a_job_has_room_where_the_profile_s_folder_vanishes(twin: Start, torch: None) -> None:
    isambard = twin("isambard")
    account = isambard.site.overlay.account
    login = isambard.sh('stat -c %U "$TMPDIR"; echo "$TMPDIR"', user="alice")
    assert login.split() == ["alice", SITES_OWN]
    srun = f"srun -A {account} -t 1 --gpus=1 bash -c {shlex.quote(JOB)}"
    plain = isambard.run("bash", "-lc", srun, user="alice")
    assert plain.stdout.split() == [SITES_OWN]
    assert "No such file or directory" in plain.stderr
    user = User(isambard, folder="temporary")
    on = ("--on", "isambard", "--account", account, "--time", "5m")
    ours = user.hpctrain("exec", "run.toml", *on, "--", "bash", "-c", JOB)
    assert ours.returncode == 0, ours.stderr
    place, made = ours.stdout.split()
    assert place == "/dev/shm/alice-hpctrain"
    assert made.startswith(f"{place}/")
