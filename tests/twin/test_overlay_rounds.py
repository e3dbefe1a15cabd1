"""Two members build one overlay at once and are killed at any moment: what is visible is always whole."""

from __future__ import annotations

import os
import random
import time

import attrs
import pytest

from tests.patience import PATIENCE
from tests.twin.fixtures import Start
from tests.twin.life import Twin
from tests.twin.test_overlay import OVERLAYS, Trainee, prepared

pytestmark = [pytest.mark.twin, pytest.mark.slow]

ROUNDS = int(os.environ.get("HPCTRAIN_SOAK", "3"))
LONGEST = 120 * PATIENCE
"""Seconds in which both builds of a round are over."""
MEMBERS = ("alice", "bob")
CLEAN = f"cd {OVERLAYS} && rm -rf rounds_* .hpc-rounds_*"
BUILD = """
cd ~/rounds/out && rm -f steps/env/finished steps/env/exit
sbatch --parsable -J rounds -A nn9999k steps/env/job.sh
"""
LOOK = f"""
. ~/rounds/out/code/publish.sh
left=$(squeue -h -n rounds -o %i | wc -l) state=none
for link in {OVERLAYS}/rounds_*.sqsh; do
    [[ ! -e $link ]] || {{ hpc_verify "$link" 2>/dev/null && state=whole || state=half; }}
done
echo "$left $state"
"""


@attrs.define
class Count:
    """What happened in all rounds."""

    rounds: int = 0
    killed: int = 0
    """Builds that did not end well."""
    both: int = 0
    """Rounds in which nobody's build ended well."""
    looks: int = 0
    half: int = 0
    """Looks that met something published that was not what its manifest says."""


@pytest.fixture(scope="module")
def olivia(twin: Start) -> Twin:
    """Olivia, where two members have the scripts of the same overlay, and its image is listed."""
    one = prepared(twin("olivia"))
    for name in MEMBERS:
        user = Trainee(one, name, folder="rounds", find_links='name = "rounds"\nfind_links')
        done = user.hpctrain("eject", "run.toml", "--out", "out")
        assert done.returncode == 0, done.stderr
    user.trained()
    return one


def one_round(twin: Twin, chance: random.Random, count: Count) -> None:
    """From nothing: two builds, one or both of them killed at some moment, and who comes next."""
    assert twin.run("bash", "-c", CLEAN).returncode == 0
    jobs = [twin.sh(BUILD, user=name).strip() for name in MEMBERS]
    began = time.monotonic()
    kills = [(began + chance.uniform(0, 8), job) for job in chance.sample(jobs, chance.choice((1, 1, 2)))]
    left, state = "2", ""
    while left != "0":
        assert time.monotonic() < began + LONGEST, twin.said()
        for due in [kill for kill in kills if kill[0] <= time.monotonic()]:
            twin.run("scancel", "--full", "-s", "KILL", due[1])
            kills.remove(due)
        left, state = twin.sh(LOOK).split()
        count.looks += 1
        count.half += state == "half"
    ended = [twin.sh("cat ~/rounds/out/steps/env/exit 2>/dev/null || true", user=name) for name in MEMBERS]
    bad = sum('"code":0,' not in text for text in ended)
    count.killed += bad
    count.both += bad == 2
    count.rounds += 1
    assert state == ("whole" if bad < 2 else state), (state, ended)


@pytest.mark.timeout(600 + ROUNDS * LONGEST)
def test_no_half_overlay_is_ever_seen(olivia: Twin) -> None:
    chance, count = random.Random(4711), Count()
    try:
        for _ in range(ROUNDS):
            one_round(olivia, chance, count)
    finally:
        print(count)
    assert (count.rounds, count.half) == (ROUNDS, 0)
    assert count.killed
    bob = Trainee(olivia, "bob", folder="rounds", find_links='name = "rounds"\nfind_links')
    assert bob.trained()["state"] == "done"
