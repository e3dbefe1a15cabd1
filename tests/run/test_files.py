"""Private, whole or absent, and one clear error for every way in which a disk says no."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpctrain.errors import HpctrainError
from hpctrain.run.system import files
from tests.conftest import needs
from tests.run.conftest import mode


def test_modes_do_not_depend_on_the_umask(tmp_path: Path, any_umask: None) -> None:
    folder = tmp_path / "a" / "b"
    files.make_folder(folder)
    files.write(folder / "file", "text")
    files.write(folder / "run.sh", b"#!/bin/sh\n", program=True)
    files.append_line(folder / "lines", b"one")
    assert [mode(p) for p in (tmp_path / "a", folder)] == [0o700, 0o700]
    assert [mode(folder / n) for n in ("file", "run.sh", "lines")] == [0o600, 0o700, 0o600]


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "x"
    files.write(path, "old")
    with path.open() as reader:
        files.write(path, "new")
        assert reader.read() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_torn_line_is_closed_before_the_next(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b'{"a":1}\n{"b":')
    files.append_line(path, b'{"c":3}')
    assert path.read_bytes() == b'{"a":1}\n{"b":\n{"c":3}\n'


@pytest.mark.parametrize(
    ("prepare", "write", "said"),
    [
        (lambda p: p.write_text(""), lambda p: files.write(p / "y", ""), "not a directory"),
        (lambda p: p.write_text(""), lambda p: files.make_folder(p / "y"), "not a directory"),
        (lambda p: p.mkdir(), lambda p: files.write(p, ""), "is a directory"),
        (lambda p: None, lambda p: files.write(p / "y", ""), "no such file or directory"),
        (lambda p: p.mkdir(), lambda p: files.append_line(p, b""), "is a directory"),
    ],
)
def test_what_stands_in_the_way_is_said(tmp_path: Path, prepare, write, said: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "x"
    prepare(path)
    with pytest.raises(HpctrainError, match=f"cannot .*{path}.*: {said}"):
        write(path)
    assert not list(tmp_path.rglob(".*"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    needs("mount", os.geteuid() == 0, "only root can mount a small file system")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "small", str(disk)])
    needs("mount", mounted.returncode == 0, "this machine does not allow to mount a tmpfs")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_leaves_the_old_content_and_no_rest(small_disk: Path) -> None:
    path = small_disk / "x"
    files.write(path, "old")
    with pytest.raises(HpctrainError, match=f"cannot write {path}: no space left") as caught:
        files.write(path, b"x" * 2_000_000)
    assert "free some space" in caught.value.problems[0].hint
    assert path.read_text() == "old"
    assert list(small_disk.iterdir()) == [path]


def test_a_full_disk_is_said_when_appending(small_disk: Path) -> None:
    path = small_disk / "lines"
    (small_disk / "big").write_bytes(b"x" * (1024 - 8) * 1024)
    with pytest.raises(HpctrainError, match="no space left"):
        files.append_line(path, b"x" * 50_000)


def test_a_read_only_file_system_is_said(small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(HpctrainError, match="read-only file system"):
        files.write(small_disk / "x", "")
