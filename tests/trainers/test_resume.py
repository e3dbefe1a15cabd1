"""The newest checkpoint that is complete and whole, never one that only exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain_job import resume
from hpctrain_trl.settings import CHECKPOINT, CHECKPOINT_LAST


def _checkpoint(folder: Path, step: int, *, last: bool = True, manifest: bool = True) -> Path:
    path = folder / f"checkpoint-{step}"
    (path / "inner").mkdir(parents=True)
    (path / "model.safetensors").write_bytes(bytes(range(256)) * step)
    (path / "inner/optimizer").write_bytes(b"state")
    if last:
        (path / CHECKPOINT_LAST).write_text("{}")
    if manifest:
        resume.write_manifest(path)
    return path


def _newest(folder: Path, said: list[str]) -> int | None:
    found = resume.newest(folder, CHECKPOINT, CHECKPOINT_LAST, said.append)
    return found.step if found else None


def test_steps_are_compared_as_numbers(tmp_path: Path) -> None:
    for step in (5, 100, 20):
        _checkpoint(tmp_path, step)
    (tmp_path / "checkpoint-300.tmp").mkdir()
    (tmp_path / "checkpoint-400").write_text("a file")
    steps = [c.step for c in resume.complete(tmp_path, CHECKPOINT, CHECKPOINT_LAST)]
    assert steps == [5, 20, 100]


def test_nothing_is_there(tmp_path: Path) -> None:
    assert _newest(tmp_path / "missing", []) is None
    assert _newest(tmp_path, []) is None


def test_a_cut_checkpoint_is_passed_over(tmp_path: Path) -> None:
    _checkpoint(tmp_path, 10)
    _checkpoint(tmp_path, 20, last=False, manifest=False)
    assert _newest(tmp_path, []) == 10


def test_one_without_manifest_counts_when_it_is_complete(tmp_path: Path) -> None:
    _checkpoint(tmp_path, 10, manifest=False)
    assert _newest(tmp_path, []) == 10


def _truncate(path: Path) -> None:
    weights = path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])


def _zero(path: Path) -> None:
    weights = path / "model.safetensors"
    weights.write_bytes(bytes(weights.stat().st_size))


def _remove(path: Path) -> None:
    (path / "inner/optimizer").unlink()


def _cut_manifest(path: Path) -> None:
    manifest = path / resume.MANIFEST
    manifest.write_text(manifest.read_text()[:-30])


def _empty_manifest(path: Path) -> None:
    (path / resume.MANIFEST).write_text("")


def _no_text(path: Path) -> None:
    (path / resume.MANIFEST).write_bytes(b"\xff\xfe\x00")


@pytest.mark.parametrize(
    ("hurt", "says"),
    [
        (_truncate, "bytes, not"),
        (_zero, "is not what was written"),
        (_remove, "is missing"),
        (_cut_manifest, "empty line"),
        (_empty_manifest, "manifest is cut"),
        (_no_text, "manifest is no text"),
    ],
)
def test_damage_is_found_and_the_one_before_is_taken(tmp_path: Path, hurt: object, says: str) -> None:
    _checkpoint(tmp_path, 10)
    newer = _checkpoint(tmp_path, 20)
    assert resume.damage(newer) == ""
    hurt(newer)  # type: ignore[operator]
    said: list[str] = []
    assert _newest(tmp_path, said) == 10
    assert len(said) == 1
    assert says in said[0]


def test_the_manifest_has_the_form_of_published_artifacts(tmp_path: Path) -> None:
    path = _checkpoint(tmp_path, 1)
    head, *lines = (path / resume.MANIFEST).read_text().splitlines()
    assert head == "# hpctrain manifest 1"
    assert [line.split()[0] for line in lines] == ["5", "256", "2"]
    assert [line.split("  ")[1] for line in lines] == [
        "inner/optimizer",
        "model.safetensors",
        CHECKPOINT_LAST,
    ]
