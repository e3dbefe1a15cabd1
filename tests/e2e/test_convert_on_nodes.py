"""`convert --job --nodes 2` on a real Slurm: each writes a share; the folder appears whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.checkpoints.models import GPT_NEOX, make
from tests.checkpoints.test_disks import texts
from tests.e2e.product import Product
from tests.e2e.test_on_slurm import until
from tests.patience import wait_for
from tests.rig.slurm import Rig

pytestmark = pytest.mark.slurm


def write_model(user: Product) -> Path:
    """A model that belongs to the user."""
    folder = make(user.folder / "model", GPT_NEOX)
    owner = user.folder.stat()
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)
    return folder


def test_two_nodes_write_what_one_computer_would(alice: Product, slurm: Rig) -> None:
    write_model(alice)
    line = ("convert", "model", "--to", "neox", "--tp", "2")
    run = alice(*line, "-o", "shared", "--job", "--nodes", "2", "--on", "rig").stdout.strip()
    wait_for("the folder", (alice.folder / "shared").exists, 60)
    status = until(alice, run, "done", "failed", "finished")
    logs = "".join(p.read_text() for p in sorted(Path(status["path"], "logs").glob("convert.rank*.log")))
    assert [f"rank {rank} on n" in logs for rank in (0, 1)] == [True, True], logs
    alice(*line, "-o", "alone")
    assert texts(alice.folder / "shared") == texts(alice.folder / "alone")


def test_damage_in_the_share_of_one_fails_the_job_and_leaves_nothing(alice: Product, slurm: Rig) -> None:
    write_model(alice)
    alice("convert", "model", "--to", "neox", "--tp", "2", "-o", "neox")
    file = sorted((alice.folder / "neox").rglob("layer_*"))[-1]
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    line = ("convert", "neox", "--shard-bytes", "9000", "-o", "out")
    run = alice(*line, "--job", "-N", "2", "--on", "rig").stdout.strip()
    status = until(alice, run, "failed")
    logs = "".join(p.read_text() for p in Path(status["path"], "logs").glob("convert.rank*.log"))
    assert "does not match" in logs, logs
    assert not (alice.folder / "out").exists()  # Slurm may kill the leader before it has removed its own
