"""A scheduler written from the pages runs real jobs: the kit's own, and a long training of several."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import wait_for
from tests.thirdparty.scratch import HERE, Scratch

KIT = """\
from hpctrain.testing import SchedulerConformance


class TestFlux(SchedulerConformance):
    scheduler, live = "flux", True
    ignores = {"jobs_per_user": "the other kit asks"}
"""
SITE = """\
scheduler = "flux"

[[source]]
id = "trial"
title = "the stand-in"
checked = "2026-11-24"
sure = "inferred"

[[queue]]
name = "pbatch"
source = "trial"
ask = { flux = ["--queue=pbatch"] }
jobs_per_user = 2
"""
PROGRAM = """\
saved=$(ls "$HPC_CHECKPOINTS" | sort -t- -k2n | tail -n 1)
step=${saved#step-}
trap 'exit 75' USR1
while ((step < 60)); do
  echo "step $((++step)) loss 1.0"
  mkdir "$HPC_CHECKPOINTS/step-$step"
  : >"$HPC_CHECKPOINTS/step-$step/done"
  sleep 0.2 & wait $!
done
"""
RUN = """\
name = "long"
cluster = "local"
environment = { use = "" }

[resources]
nodes = 1
time = "8s"
total = "40s"

[train]
use = "command"

[train.command]
argv = ["bash", "program.sh"]
checkpoints = "."
checkpoint_name = 'step-(?P<step>\\d+)'
checkpoint_last = "done"
metrics = 'step (?P<step>\\d+) loss (?P<loss>[\\d.]+)'
ranks = "once"

[code]
path = "."
"""


@pytest.fixture
def environ(installed: Scratch, tmp_path: Path) -> dict[str, str]:
    """A user of a cluster with the stand-in for Flux."""
    program = tmp_path / "bin/flux"
    program.parent.mkdir()
    call = f'FLUX_STANDIN={tmp_path / "flux"} exec {sys.executable} {HERE / "standin_flux.py"} "$@"'
    program.write_text(f"#!/bin/bash\n{call}\n")
    program.chmod(0o755)
    (tmp_path / "home").mkdir()
    return {
        "PATH": f"{program.parent}:{installed.folder}/bin:/usr/bin:/bin",
        "HOME": str(tmp_path / "home"),
        "USER": "alice",
        "LANG": "C.UTF-8",
    }


def test_it_passes_the_kit_with_real_jobs(
    installed: Scratch, environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "test_live.py").write_text(KIT)
    argv = (installed.folder / "bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_live.py")
    done = subprocess.run(argv, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_jobs_of_a_long_training_hand_over_the_next(environ: dict[str, str], tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for name, text in (("run.toml", RUN), ("program.sh", PROGRAM), ("site.toml", SITE)):
        (work / name).write_text(text)

    def hpctrain(*words: str) -> str:
        done = subprocess.run(
            ("hpctrain", *words),
            cwd=work,
            env={**environ, "HPCTRAIN_SITE": str(work / "site.toml")},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    hpctrain("submit", "run.toml")
    wait_for(
        "its end", lambda: json.loads(hpctrain("status", "long", "--json"))["state"] == "done", seconds=120
    )
    (folder,) = (Path(environ["HOME"]) / ".local/share/hpctrain/runs/long").glob("1-*")
    record = [json.loads(line) for line in (folder / "record.jsonl").read_text().splitlines()]
    submitted = [row for row in record if row["event"] == "submitted"]
    assert [row["job"] for row in submitted[:2]] == ["ƒ1oCkYNT", "ƒ2oCkYNT"]
    assert submitted[2]["by"] == "ƒ1oCkYNT"  # from inside of the job
    steps = [
        line.split()[1] for line in (folder / "logs/train.log").read_text().splitlines() if "loss" in line
    ]
    assert steps == [str(step) for step in range(1, 61)]
