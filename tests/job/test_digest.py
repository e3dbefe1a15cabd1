"""The hash of a folder is that of its content, on every machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hpctrain_job.tree import digest


def tree(root: Path) -> Path:
    (root / "pkg").mkdir(parents=True)
    (root / "pkg/a.py").write_text("a")
    (root / "b 'c'.py").write_text("b")
    (root / "link").symlink_to("pkg")
    return root


def test_copies_are_equal(tmp_path: Path) -> None:
    first = tree(tmp_path / "one")
    second = tmp_path / "two"
    shutil.copytree(first, second, symlinks=True)
    os.utime(second / "pkg/a.py", (1, 1))
    assert digest(first) == digest(second)


def test_what_others_leave_does_not_count(tmp_path: Path) -> None:
    root = tree(tmp_path / "one")
    before = digest(root)
    for name in (".git", "pkg/__pycache__"):
        (root / name).mkdir()
        (root / name / "x").write_text("x")
    assert digest(root) == before
    (root / ".gitignore").write_text("x")
    assert digest(root) != before


@pytest.mark.parametrize("change", ["content", "name", "mode", "link", "link-to-file", "moved"])
def test_every_change_counts(change: str, tmp_path: Path) -> None:
    root = tree(tmp_path / "one")
    before = digest(root)
    if change == "content":
        (root / "pkg/a.py").write_text("A")
    elif change == "name":
        (root / "pkg/a.py").rename(root / "pkg/A.py")
    elif change == "mode":
        (root / "pkg/a.py").chmod(0o755)
    elif change == "moved":
        (root / "pkg/a.py").rename(root / "a.py")
    else:
        (root / "link").unlink()
        (root / "link").symlink_to("." if change == "link" else "pkg/a.py")
    assert digest(root) != before


def test_links_that_go_round_end(tmp_path: Path) -> None:
    root = tree(tmp_path / "one")
    (root / "pkg/up").symlink_to("..")
    (root / "nowhere").symlink_to("gone")
    assert len(digest(root)) == 64


def test_a_pipe_is_refused_and_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="neither a file nor a folder"):
        digest(tmp_path / "pipe")
    with pytest.raises(OSError, match="neither a file nor a folder"):
        digest(tmp_path)
