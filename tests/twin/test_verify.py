"""The commands by which a live site confirms its facts: they are run, by a real Slurm and a real Lmod.

What they confirm here is only that they can be run and that their expectation fits the form of an answer: the
twin is made of the same facts. Commands for what a twin has not are named below.
"""

from __future__ import annotations

import re

import pytest

from tests.twin.fixtures import Start
from tests.twin.services.inside import ready, shadow

pytestmark = [pytest.mark.twin, pytest.mark.slow]

ABSENT = {
    "lfs": "Lustre",
    "nvidia-smi": "GPUs",
    "/sys/class/infiniband": "InfiniBand",
    "sacctmgr": "accounting, on a twin that boots without",
    "cindata": "CINECA's own programs",
    "saldo": "CINECA's own programs",
    "module --version": "Environment Modules",
}


@pytest.mark.parametrize(("name", "least"), [("frontier", 6), ("isambard", 10), ("leonardo", 6)])
def test_the_commands_that_a_site_is_asked(twin: Start, name: str, least: int) -> None:
    site = ready(twin(name))
    shadow(site)
    account = site.site.overlay.account
    env = {"SLURM_ACCOUNT": account} if account else {}
    held = []
    for verify in site.site.cluster.verify:
        syntax = site.run("bash", "-nc", verify.command)
        assert syntax.returncode == 0, syntax.stderr
        if any(word in verify.command for word in ABSENT):
            continue
        done = site.run("bash", "-lc", verify.command, user="alice", timeout=90, env=env)
        said = done.stdout + done.stderr
        assert re.search(verify.expect, said, re.MULTILINE), f"{verify.fact}: {verify.command}\n{said}"
        held.append(verify.fact)
    assert len(held) >= least, held
