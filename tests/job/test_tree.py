"""Content of the user's files: one digest, copies that are proven."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain.lock import MARK
from hpctrain_job import tree


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "src"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg/a.py").write_text("A = 1\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    return folder


def test_what_tools_leave_behind_is_no_content(source: Path) -> None:
    before = tree.digest(source)
    (source / ".git").mkdir()
    (source / ".git/HEAD").write_text("x")
    (source / "pkg/__pycache__").mkdir()
    (source / "pkg/__pycache__/a.pyc").write_text("x")
    assert tree.digest(source) == before


def test_the_lock_of_a_run_is_no_content_and_other_locks_are(source: Path, tmp_path: Path) -> None:
    before = tree.digest(source)
    (source / "run.lock.toml").write_text(f'name = "x"\n\n{MARK}\n')
    assert tree.digest(source) == before
    tree.copy(source, tmp_path / "copy")
    assert not (tmp_path / "copy/run.lock.toml").exists()
    (source / "mine.lock.toml").write_text('name = "x"\n')
    assert tree.digest(source) != before


@pytest.mark.parametrize("change", ["content", "name", "mode", "link", "new"])
def test_every_change_is_seen(source: Path, change: str) -> None:
    before = tree.digest(source)
    file = source / "run.sh"
    if change == "content":
        file.write_text("#!/bin/sh\n:\n")
    elif change == "name":
        file.rename(source / "go.sh")
    elif change == "mode":
        file.chmod(0o755)
    elif change == "link":
        file.unlink()
        file.symlink_to("pkg/a.py")
    else:
        (source / "new").touch()
    assert tree.digest(source) != before


def test_a_copy_is_proven(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planned = tree.digest(source)
    assert tree.main([str(source), str(tmp_path / "one"), "--sha256", planned]) == 0
    assert tree.digest(tmp_path / "one") == planned
    (source / "pkg/a.py").write_text("A = 2\n")
    assert tree.main([str(source), str(tmp_path / "two"), "--sha256", planned]) == 65
    assert "changed since the run was planned" in capsys.readouterr().err


def test_a_file_and_nothing(source: Path, tmp_path: Path) -> None:
    file = source / "run.sh"
    target = tmp_path / "deep" / "run.sh"
    assert tree.main([str(file), str(target), "--sha256", tree.digest(file)]) == 0
    assert target.read_bytes() == file.read_bytes()
    assert tree.main([str(source / "nothing"), str(tmp_path / "x")]) == 66
