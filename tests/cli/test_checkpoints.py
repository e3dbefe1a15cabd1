"""`checkpoints` lists what is on the disk, and believes no manifest that the files contradict."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain_job import resume
from tests.e2e.product import Product, small
from tests.patience import wait_for

SAVES = (
    'for s in 10 20 30; do mkdir -p "$HPC_CHECKPOINTS/checkpoint-$s";'
    ' echo "weights $s" > "$HPC_CHECKPOINTS/checkpoint-$s/weights"; done'
)


@pytest.fixture
def folder(here: Product) -> Path:
    """Where a run saved three checkpoints; the first was exported, the last has lost its manifest."""
    here.write(small(SAVES) + 'checkpoints = "."\n')
    here("submit", "--wait")
    folder = Path(here.json("checkpoints")["folder"])
    (folder / "hf/checkpoint-10").mkdir(parents=True)
    manifest = folder / "checkpoint-30" / resume.MANIFEST
    wait_for("the last manifest, which a job writes once its end is recorded", manifest.exists)
    manifest.unlink()
    return folder


def states(here: Product, *options: str) -> dict[int, str]:
    """The state of each checkpoint by its step."""
    return {row["step"]: row["state"] for row in here.json("checkpoints", *options)["checkpoints"]}


def test_a_run_lists_its_checkpoints(here: Product, folder: Path) -> None:
    shown = here("checkpoints", "small/1").stdout.splitlines()
    assert shown[0].split() == ["STEP", "SIZE", "SAVED", "STATE", "EXPORTED", "NAME"]
    assert [line.split()[-3:] for line in shown[1:4]] == [
        ["whole", "hf", "checkpoint-10"],
        ["whole", "-", "checkpoint-20"],
        ["manifest", "-", "checkpoint-30"],
    ]
    assert shown[4:] == [f"below  {folder}", f"model  {folder}/hf/checkpoint-10"]
    rows = here.json("checkpoints")["checkpoints"]
    assert [row["step"] for row in rows] == [10, 20, 30]
    assert rows[0]["exports"] == [{"format": "hf", "path": f"{folder}/hf/checkpoint-10"}]
    assert rows[2]["size_bytes"] == len("weights 30\n")


def test_a_checkpoint_is_what_its_manifest_says(here: Product, folder: Path) -> None:
    assert states(here, "--verify") == {10: "verified", 20: "verified", 30: "whole"}
    (folder / "checkpoint-10/weights").write_text("WEIGHTS 10\n")
    (folder / "checkpoint-20/weights").write_text("weig")
    seen = states(here)
    assert seen[10] == "whole"  # its size fits, and nobody read it
    assert seen[20] == "damaged: weights has 4 bytes, not 11"
    assert states(here, "--verify")[10] == "damaged: weights is not what was written"
    (folder / "checkpoint-20/weights").unlink()
    assert states(here)[20] == "damaged: weights is missing"


def test_a_run_that_saved_nothing_says_so(here: Product) -> None:
    here.write(small("true"))
    here("submit", "--wait")
    assert "its trainer does not say where it saves" in here("checkpoints").stderr
    here.write(small("true") + 'checkpoints = "."\n')
    here("submit", "--wait")
    assert "small/2 has no checkpoint yet; they will be in " in here("checkpoints").stderr
    assert here.json("checkpoints", "small/2")["checkpoints"] == []
