"""Two builders of one user while another of the group plants and swaps: nothing foreign ever runs."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.run.users import MALLORY, USER, bash_as, bash_started_as
from tests.run.users import project as project

ROUNDS = int(os.environ.get("HPCTRAIN_SOAK", "20"))

BUILD = """
hpc_exists "$LINK" && exit 0
trap hpc_abandon EXIT
hpc_begin "$LINK"
mkdir "$WORK"
sleep "$PAUSE"
echo 'echo good as $EUID' >"$WORK/program"
hpc_publish "$LINK"
"""
"""As job.sh does it, where a build takes a while."""

USE = 'hpc_require "$LINK" && bash "$LINK/program"'

EVIL = "echo 'echo foreign as $EUID; touch \"$PROJECT/ran\"'"
PUBLISHED = f'hpc_begin "$LINK" && mkdir "$WORK" && {EVIL} >"$WORK/program" && hpc_publish "$LINK"'
"""Nothing is wrong with it but whose it is."""
AWAY = 'cd "$PROJECT" && mv -T hpctrain "away.$RANDOM"'

ATTACKS = {
    "a whole artifact": PUBLISHED,
    "a link": f'mkdir -p mine; {EVIL} >mine/program; ln -sn mine "$NAME"',
    "a link of hers to a whole folder of hers": (
        f'LINK=${{LINK%/*}}/x; {PUBLISHED}; ln -sn "$(readlink x)" "$NAME"'
    ),
    "a link of hers to what the user builds": (
        'for at in .hpc-"$NAME".*; do ln -sn "$at/content" "$NAME"; done'
    ),
    "files in what the user builds": f'for at in .hpc-"$NAME".*; do {EVIL} >"$at/content/program"; done',
    "what the user published": (f'mv -T "$NAME" old; rm -f "$NAME"; mv -T .hpc-"$NAME".* away; {PUBLISHED}'),
    "parents": f"{AWAY}; {PUBLISHED}",
    "parents that are links": (
        f'cd "$PROJECT"; mkdir -p theirs; {AWAY}; cd "$PROJECT"; ln -sn theirs hpctrain; {PUBLISHED}'
    ),
    "nothing": ":",
}
"""What the other user does again and again, beginning in the shared folder."""

LOOP = """
set +e; umask 022; HPC_OWNERS={accepted}
while :; do
  ( cd "${{LINK%/*}}" || cd "$PROJECT"; {attack} ) 2>/dev/null
  sleep 0.01
done
"""


def ended(process: subprocess.Popen[str]) -> int:
    """Kill a program with everything that it started."""
    os.killpg(process.pid, signal.SIGKILL)
    return process.wait(60)


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_foreign_ever_runs(project: Path, attack: str) -> None:
    chance = random.Random(attack)
    seen: Counter[str] = Counter()
    for number in range(max(1, ROUNDS // len(ATTACKS))):
        root = project / str(number)
        bash_as(MALLORY if chance.random() < 0.2 else USER, f'mkdir -m 2770 "{root}"', project)
        name = f"venv-{number}"
        link = root / "hpctrain/env" / name
        env = {"LINK": str(link), "NAME": name, "PROJECT": str(root), "HPC_SHARE": "project"}
        attacker = bash_started_as(
            MALLORY, LOOP.format(attack=ATTACKS[attack], accepted=USER), project, **env
        )
        time.sleep(chance.choice([0, 0.2]))
        pauses = [f"{chance.random() * 0.2:.2f}" for _ in range(2)]
        builders = [bash_started_as(USER, BUILD, project, **env, PAUSE=pause) for pause in pauses]
        if chance.random() < 0.5:
            time.sleep(chance.random() * 0.3)
            ended(builders[0])
        for builder in builders:
            builder.wait(60)
        ended(attacker)
        done = bash_as(USER, USE, project, **env)
        assert "foreign" not in done.stdout
        assert not (root / "ran").exists()
        if done.returncode == 0:
            assert done.stdout == f"good as {USER}\n"
        else:
            assert "hpctrain: " in done.stderr, done
        seen["used" if done.returncode == 0 else "refused"] += 1
    if attack in ("nothing", "files in what the user builds"):
        assert seen["used"], seen  # who may harm nothing stops nothing
