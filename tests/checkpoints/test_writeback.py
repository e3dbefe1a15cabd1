"""Files go to the disk beside the work, and what the disk says against it is not lost."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from hpctrain.errors import HpctrainError
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.copying import writeback
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.models import LLAMA, make


def test_a_file_is_synchronised_each_time_enough_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[Path] = []
    monkeypatch.setattr(os, "fdatasync", lambda fd: done.append(Path(f"/proc/self/fd/{fd}").readlink()))
    file = tmp_path / "a"
    file.touch()
    with writeback.Writeback() as beside:
        for _ in range(7):
            beside.note(file, writeback.EVERY // 2)
    assert done == [file] * 3


def test_many_small_files_are_synchronised_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(os, "fdatasync", lambda fd: done.append(Path(f"/proc/self/fd/{fd}").readlink().name))
    names = [f"{n}" for n in range(9)]
    with writeback.Writeback() as beside:
        for name in names:
            (tmp_path / name).touch()
            beside.note(tmp_path / name, writeback.EVERY // 4)
    assert sorted(done) == names[:8]


def test_an_error_of_the_disk_fails_the_conversion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    source = make(tmp_path / "model", LLAMA)
    monkeypatch.setattr(writeback, "EVERY", 1)
    monkeypatch.setattr(os, "fdatasync", broken)
    with pytest.raises(HpctrainError, match="Input/output error; nothing was kept") as caught:
        convert(source, "hf", tmp_path / "out", ConvertOptions())
    assert caught.value.exit_code == 1
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    convert(source, "hf", tmp_path / "out", ConvertOptions(fsync=False))
