"""A program of the user's own that writes beside itself, as most do, in two runs at the same time."""

from __future__ import annotations

import json
from pathlib import Path

from hpctrain_job.tree import digest
from tests.e2e.product import Product
from tests.patience import wait_for

PROGRAM = """
import json
import os
import pathlib
import sys
import time

import mine

title = os.environ["HPC_RUN"].rpartition("/")[2]
for name in ("outputs", "wandb/offline-run-20261123_180000-" + title[:1]):
    pathlib.Path(name).mkdir(parents=True, exist_ok=True)
with open("outputs/attempts", "a") as file:
    file.write(title + "\\n")
attempts = pathlib.Path("outputs/attempts").read_text().split()
pathlib.Path("seen.json").write_text(json.dumps({
    "folder": os.getcwd(),
    "source": os.environ["HPC_SOURCE"],
    "attempts": attempts,
    "module": mine.__file__,
    "caches": {name: value for name, value in os.environ.items() if name in sys.argv[2].split(",")},
}))
other = pathlib.Path(sys.argv[1])
while not other.exists():
    time.sleep(0.05)
sys.exit(0 if len(attempts) > 1 else 1)
"""
CACHES = (
    *("HF_HOME", "HF_DATASETS_CACHE", "HPC_CACHE", "TORCH_HOME", "TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR"),
    *("WANDB_DATA_DIR", "WANDB_DIR", "XDG_CACHE_HOME"),
)
RUN = """
name    = "own"
cluster = "local"

[resources]
nodes = 1
time  = "5m"

[environment]
use = ""

[code]
path = "code"

[train]
use = "command"

[train.command]
argv  = ["python3", "train.py", "{go_on}", "{caches}"]
ranks = "once"
"""


def _written(here: Product) -> Path:
    """The user's folder with the program and a run file; the path for which the program waits."""
    go_on = here.folder / "go-on"
    here.write(RUN.format(go_on=go_on, caches=",".join(CACHES)))
    here.write(PROGRAM, "code/train.py")
    here.write("", "code/mine.py")
    return go_on


def _runs(here: Product) -> list[Path]:
    return sorted((here.home / ".local/share/hpctrain/runs/own").glob("*-*"))


def _asset(here: Product) -> Path:
    (asset,) = (here.home / ".local/share/hpctrain/assets").glob("file-*")
    return asset


def _seen(run: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((run / "source/seen.json").read_text())
    return found


def test_two_runs_at_once_write_to_folders_of_their_own(here: Product) -> None:
    go_on = _written(here)
    here("submit")
    before = digest(_asset(here))
    here("submit", "--set", "resources.time=6m")
    wait_for("both programs", lambda: len(list(here.home.rglob("seen.json"))) == 2)
    go_on.touch()
    first, second = _runs(here)
    for run in (first, second):
        wait_for("the end", (run / "steps/train/exit").exists)
        seen = _seen(run)
        assert seen["folder"] == seen["source"] == str(run / "source")
        assert seen["attempts"] == [run.name]
        assert seen["module"] == str(run / "source/mine.py")
    assert digest(_asset(here)) == before == digest(here.folder / "code")
    assert not list(_asset(here).rglob("__pycache__"))


def test_the_next_attempt_finds_what_the_first_one_wrote(here: Product) -> None:
    _written(here).touch()
    here("submit", "--wait", code=8)
    here("continue")
    (run,) = _runs(here)
    wait_for("the second attempt", (run / "steps/train/finished").exists)
    assert _seen(run)["attempts"] == [run.name, run.name]
    assert not list(run.glob("source.*"))


def test_caches_lie_in_the_run_and_what_datasets_made_serves_the_next_run(here: Product) -> None:
    _written(here).touch()
    here("submit", "--wait", code=8)
    here("submit", "--wait", "--set", "resources.time=6m", code=8)
    shared = []
    for run in _runs(here):
        caches = _seen(run)["caches"]
        assert isinstance(caches, dict)
        assert set(caches) == set(CACHES)
        shared.append(caches.pop("HF_DATASETS_CACHE"))
        assert {name for name, path in caches.items() if not Path(path).is_relative_to(run)} == set()
    assert shared[0] == shared[1]
    assert Path(shared[0]).stat().st_mode & 0o777 == 0o700


def test_its_own_wandb_runs_are_found(here: Product) -> None:
    _written(here).touch()
    here("submit", "--wait", code=8)
    (here.folder / "bin").mkdir()
    wandb = here.write(
        "#!/bin/bash\n# a stand-in for wandb: it marks what it was asked to send\n"
        'touch "$2/run.wandb.synced"\n',
        "bin/wandb",
    )
    wandb.chmod(0o755)
    path = f"{here.folder}/bin:{here.environment['PATH']}"
    assert "offline-run-20261123_180000-1  sent" in here("sync", "own", PATH=path).stdout
