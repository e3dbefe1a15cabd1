"""`hpctrain sync` with a stand-in for wandb: it notes what it was asked and marks a folder as wandb does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpctrain.cli.commands.sync import command
from hpctrain.cli.flags import Flags
from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError, StepFailed
from hpctrain.run.disk.directory import RunDirectory
from tests.e2e.product import Product, small

STAND_IN = """\
#!/bin/bash
# a stand-in for wandb: `wandb sync FOLDER`
echo "$*|$WANDB_API_KEY|$HF_TOKEN" >>"$HOME/asked"
[[ ! -e $2/broken ]] || { echo "wandb: ERROR no login"; exit 1; }
touch "$2/run-1.wandb.synced"
"""


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    found = RunDirectory.create(tmp_path / "runs", "demo", "4f1c9a2e" * 8, {"plan.json": "{}"})
    for name in (
        "wandb/offline-run-20261120_1-a",
        "wandb/offline-run-20261119_1-b",
        "wandb/run-20261120_2-c",
    ):
        (found.path / name).mkdir(parents=True)
        (found.path / name / "run-1.wandb").touch()
    return found


def sync(run: RunDirectory, home: Path, *, program: bool = True) -> dict[str, object]:
    bin_ = home / "bin"
    bin_.mkdir(exist_ok=True)
    if program:
        (bin_ / "wandb").write_text(STAND_IN)
        (bin_ / "wandb").chmod(0o755)
    environ = {"PATH": f"{bin_}:/usr/bin:/bin", "HOME": str(home), "WANDB_API_KEY": "k" * 40, "HF_TOKEN": "t"}
    out = Out.of(Flags(json=True), environ)
    done = CliRunner().invoke(command, [str(run.path)], obj=out, standalone_mode=False)
    if done.exception:
        raise done.exception
    found: dict[str, object] = json.loads(done.output)
    return found


def test_each_offline_folder_is_sent_once_and_oldest_first(run: RunDirectory, tmp_path: Path) -> None:
    names = ["offline-run-20261119_1-b", "offline-run-20261120_1-a"]
    assert sync(run, tmp_path)["sent"] == names
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == [f"sync {run.path}/wandb/{name}|{'k' * 40}|" for name in names]
    assert sync(run, tmp_path)["sent"] == []
    assert sync(run, tmp_path)["folders"] == names
    assert len((tmp_path / "asked").read_text().splitlines()) == 2


def test_without_wandb_it_says_how_to_get_it(run: RunDirectory, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="wandb is not on PATH") as raised:
        sync(run, tmp_path, program=False)
    assert raised.value.problems[0].hint == "pip install wandb"


def test_a_folder_that_fails_is_named_with_its_log_and_left_for_the_next_time(
    run: RunDirectory, tmp_path: Path
) -> None:
    broken = run.path / "wandb/offline-run-20261120_1-a/broken"
    broken.touch()
    with pytest.raises(StepFailed, match="offline-run-20261120_1-a ended with exit code 1") as raised:
        sync(run, tmp_path)
    assert "no login" in Path(raised.value.problems[0].where).read_text()
    broken.unlink()
    assert sync(run, tmp_path)["sent"] == ["offline-run-20261120_1-a"]


def test_what_grew_after_it_was_sent_is_sent_again(run: RunDirectory, tmp_path: Path) -> None:
    sync(run, tmp_path)
    log = run.path / "wandb/offline-run-20261120_1-a/run-1.wandb"
    later = log.stat().st_mtime + 5
    os.utime(log, (later, later))
    assert sync(run, tmp_path)["sent"] == ["offline-run-20261120_1-a"]


def test_a_run_is_followed_to_its_end_and_a_minute_without_network_costs_nothing(here: Product) -> None:
    """A real run on this computer that logs as it trains; wandb is the stand-in, and fails once."""
    log = 'd="$HPC_RUN/wandb/offline-run-1"; mkdir -p "$d"; touch "$d/broken"; echo x >> "$d/run-1.wandb"; '
    tried = 'for i in $(seq 150); do grep -q ERROR "$d.sync.log" && break; sleep 0.2; done; '
    here.write(small(log + tried + 'rm "$d/broken"; ' + 'sleep 2; echo x >> "$d/run-1.wandb"; ' * 3))
    (here.home / "bin").mkdir()
    program = here.home / "bin/wandb"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    here("submit")
    environ = {**here.environment, "PATH": f"{program.parent}:{here.environment['PATH']}"}
    fast = "import hpctrain.cli.commands.sync as sync; sync.FOLLOW_SECONDS = 1.0; import hpctrain.__main__"
    done = subprocess.run(
        [sys.executable, "-c", fast, "sync", "small", "--follow"],
        cwd=here.folder, env=environ, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["offline-run-1  sent"]
    assert "sync-failed" in done.stderr
    assert len((here.home / "asked").read_text().splitlines()) >= 3
