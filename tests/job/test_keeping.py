"""The checkpoints of any trainer: vouched for once they rest, dropped never below the last good one, and the
damaged ones out of the trainer's sight before it looks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpctrain_job import keeping, resume
from hpctrain_job.exit_codes import CONFIG
from hpctrain_job.keeping import Keeper, Saves
from tests.conftest import ROOT
from tests.patience import wait_for

NAME = r"global_step(?P<step>\d+)"


@pytest.fixture
def saves(tmp_path: Path) -> Saves:
    return Saves(tmp_path / "ck", NAME, "configs/end.yml", "latest")


def save(saves: Saves, step: int, *, whole: bool = True, manifest: bool = False) -> Path:
    """As a trainer that writes no manifest does."""
    path = saves.folder / f"global_step{step}"
    (path / "configs").mkdir(parents=True)
    (path / "mp_rank_00.pt").write_bytes(bytes([step % 256]) * 3000)
    if whole:
        (path / "configs/end.yml").write_text("end")
        (saves.folder / "latest").write_text(path.name)
    if manifest:
        resume.write_manifest(path)
    return path


def flip(path: Path) -> None:
    """One other byte, the size as it was."""
    data = bytearray(path.read_bytes())
    data[7] ^= 1
    path.write_bytes(data)


def names(saves: Saves) -> list[str]:
    return sorted(path.name for path in saves.folder.iterdir())


def test_a_manifest_is_written_once_two_looks_saw_the_same(saves: Saves) -> None:
    path = save(saves, 10)
    keeper = Keeper(saves)
    keeper.look()
    assert not (path / resume.MANIFEST).exists(), "another rank may still write"
    (path / "optimizer.pt").write_bytes(b"a late rank")
    keeper.look()
    assert not (path / resume.MANIFEST).exists()
    keeper.look()
    assert (path / resume.MANIFEST).exists()
    assert resume.damage(path) == ""
    flip(path / "optimizer.pt")
    assert resume.damage(path) == "optimizer.pt is not what was written"


def test_a_cut_checkpoint_is_never_vouched_for(saves: Saves) -> None:
    path = save(saves, 10, whole=False)
    keeper = Keeper(saves)
    for _ in range(3):
        keeper.look()
    keeper.look(is_over=True)
    assert not (path / resume.MANIFEST).exists()


def test_what_the_trainer_adds_to_its_newest_is_vouched_for_too(saves: Saves) -> None:
    path = save(saves, 10)
    keeper = Keeper(saves)
    keeper.look()
    keeper.look()
    (path / "configs/end.yml").write_text("end, consolidated")
    assert "bytes" in resume.damage(path)
    keeper.look()
    keeper.look()
    assert resume.damage(path) == ""


def test_what_changes_in_an_older_one_is_damage(saves: Saves) -> None:
    path = save(saves, 10)
    keeper = Keeper(saves)
    keeper.look()
    keeper.look()
    save(saves, 20)
    flip(path / "mp_rank_00.pt")
    for _ in range(3):
        keeper.look()
    assert resume.damage(path) == "mp_rank_00.pt is not what was written"


def test_without_a_last_file_a_newer_one_or_the_end_says_that_it_is_whole(tmp_path: Path) -> None:
    saves = Saves(tmp_path / "ck", NAME)
    first = save(saves, 10)
    keeper = Keeper(saves)
    keeper.look()
    keeper.look()
    assert not (first / resume.MANIFEST).exists()
    second = save(saves, 20)
    keeper.look()
    keeper.look()
    assert (first / resume.MANIFEST).exists()
    assert not (second / resume.MANIFEST).exists()
    keeper.look(is_over=True)
    assert (second / resume.MANIFEST).exists()


def test_old_ones_go_and_the_newest_good_ones_stay(saves: Saves) -> None:
    for step in range(10, 60, 10):
        save(saves, step, manifest=True)
    (saves.folder / "notes.txt").write_text("a foreign file")
    (saves.folder / "global_step5.backup").mkdir()
    keeping.retain(saves, 2)
    names_left = {"global_step40", "global_step50", "global_step5.backup", "latest", "notes.txt"}
    assert set(names(saves)) == names_left


@pytest.mark.parametrize("damage", ["cut", "no manifest", "a file is missing"])
def test_the_last_good_one_stays_whatever_became_of_newer_ones(saves: Saves, damage: str) -> None:
    save(saves, 10, manifest=True)
    for step in (20, 30, 40):
        path = save(saves, step, whole=damage != "cut", manifest=damage == "a file is missing")
        if damage == "a file is missing":
            (path / "mp_rank_00.pt").unlink()
    for keep in (1, 2):
        keeping.retain(saves, keep)
        assert "global_step10" in names(saves)
    save(saves, 50, manifest=True)
    keeping.retain(saves, 1)
    assert [name for name in names(saves) if name.startswith("global_step")] == ["global_step50"]


def test_what_a_killed_removal_left_is_removed_and_never_taken(saves: Saves) -> None:
    save(saves, 10, manifest=True)
    half = saves.folder / f"{keeping.DROPPED}global_step5"
    half.mkdir()
    assert [checkpoint.step for checkpoint in saves.named()] == [10]
    keeping.retain(saves, 1)
    assert not half.exists()


def test_a_damaged_newest_is_set_aside_and_the_pointer_names_the_one_before(
    saves: Saves, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in (10, 20, 30):
        save(saves, step, manifest=True)
    (saves.folder / "LATEST").symlink_to("global_step30")
    flip(saves.folder / "global_step30/mp_rank_00.pt")
    save(saves, 40, whole=False)
    (saves.folder / "latest").write_text("global_step30")
    assert keeping.check(saves) == 0
    assert names(saves) == ["LATEST", "damaged", "global_step10", "global_step20", "latest"]
    assert sorted(path.name for path in (saves.folder / "damaged").iterdir()) == [
        "global_step30",
        "global_step40",
    ]
    assert saves.pointed() == "global_step20"
    assert (saves.folder / "LATEST").resolve().name == "global_step20"
    stderr = capsys.readouterr().err
    assert "global_step30 is damaged: mp_rank_00.pt is not what was written" in stderr
    assert "the newest checkpoint is global_step20, verified" in stderr
    save(saves, 30, manifest=True)
    flip(saves.folder / "global_step30/mp_rank_00.pt")
    assert keeping.check(saves) == 0
    assert (saves.folder / "damaged/global_step30.2").is_dir(), "the first one is not overwritten"


def test_only_damaged_ones_are_left_where_they_are_and_nothing_begins(saves: Saves) -> None:
    path = save(saves, 10, manifest=True)
    flip(path / "mp_rank_00.pt")
    assert keeping.check(saves) == CONFIG
    assert path.is_dir()


def test_nothing_and_a_first_one_that_was_cut_begin_anew(saves: Saves) -> None:
    assert keeping.check(saves) == 0
    save(saves, 10, whole=False)
    assert keeping.check(saves) == 0
    assert names(saves) == ["damaged"]


def test_a_person_who_points_to_an_older_whole_one_is_obeyed(saves: Saves) -> None:
    for step in (10, 20):
        save(saves, step, manifest=True)
    (saves.folder / "latest").write_text("global_step10\n")
    assert keeping.check(saves) == 0
    assert saves.pointed() == "global_step10"


def test_the_watch_ends_with_the_job_that_started_it(saves: Saves) -> None:
    path = save(saves, 10)
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "core")}
    patched = "from hpctrain_job import keeping; keeping.POLL = 0.1; import sys; sys.exit(keeping.main())"
    words = (
        sys.executable,
        "-c",
        patched,
        "watch",
        str(saves.folder),
        f"--name={NAME}",
        "--last=configs/end.yml",
    )
    script = '"$@" & echo $!; until [[ -e $MANIFEST ]]; do sleep 0.1; done'
    done = subprocess.run(
        ("bash", "-c", script, "bash", *words),
        env={**env, "MANIFEST": str(path / resume.MANIFEST)}, capture_output=True, text=True, timeout=60,
        check=True,
    )  # fmt: skip
    watch = Path("/proc", done.stdout.strip())
    wait_for("the end of the watch", lambda: not watch.exists(), 20)
