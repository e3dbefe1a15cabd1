"""Columns of a matrix for several ranks: read once, cut right, checked against what their writer noted."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpctrain.errors import IntegrityError
from hpctrain_plugins.checkpoints.bands import Checksum
from hpctrain_plugins.checkpoints.copying.columns import groups
from hpctrain_plugins.checkpoints.copying.engine import Copy, run
from hpctrain_plugins.checkpoints.copying.reading import CHUNK, Ledger
from hpctrain_plugins.checkpoints.output import OutFile, Part
from hpctrain_plugins.checkpoints.tensors import Tensor, whole

ROWS, COLUMNS, RANKS = 2000, 1036, 4  # 3.9 MiB of bf16: several chunks, rows that divide none of them
START = 64


@pytest.fixture
def source(tmp_path: Path) -> Path:
    numbers = np.random.default_rng(3).standard_normal((ROWS, COLUMNS), dtype=np.float32)
    file = tmp_path / "source"
    file.write_bytes(bytes(START) + numbers.tobytes())
    return file


def ranks(source: Path, dtype: str) -> list[OutFile]:
    """One file per rank, which holds its columns."""
    parts = whole("w", "F32", (ROWS, COLUMNS), source, START).chunk(1, RANKS)
    return [
        OutFile(f"{rank}", Part(8, t, dtype).size + 8, (Part(8, t, dtype),)) for rank, t in enumerate(parts)
    ]


def written(root: Path, rank: int, dtype: Any) -> Any:
    return np.fromfile(root / str(rank), dtype, offset=8).reshape(ROWS, COLUMNS // RANKS)


@pytest.mark.parametrize("threads", [1, 3])
def test_every_byte_is_read_once(
    tmp_path: Path, source: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    preadv = os.preadv

    def counted(fd: int, buffers: list[memoryview], offset: int) -> int:
        read.append(preadv(fd, buffers, offset))
        return read[-1]

    monkeypatch.setattr(os, "preadv", counted)
    copy = Copy(tmp_path / "out", ranks(source, "F32"), None)
    copy.allocate()
    run(copy.tasks(), Ledger({}), threads)
    assert sum(read) == ROWS * COLUMNS * 4
    have = np.fromfile(source, np.float32, offset=START).reshape(ROWS, COLUMNS)
    for rank, part in enumerate(np.split(have, RANKS, 1)):
        assert (written(tmp_path / "out", rank, np.float32) == part).all()
        assert copy.crcs(rank) == [zlib.crc32(part.tobytes())]


def test_columns_are_rounded_as_the_whole_is(tmp_path: Path, source: Path) -> None:
    tensor = whole("w", "F32", (ROWS, COLUMNS), source, START)
    alone = OutFile("whole", ROWS * COLUMNS * 2, (Part(0, tensor, "BF16"),))
    copy = Copy(tmp_path / "out", [*ranks(source, "BF16"), alone], None)
    copy.allocate()
    run(copy.tasks(), Ledger({}), 2)
    have = np.fromfile(tmp_path / "out/whole", np.uint16).reshape(ROWS, COLUMNS)
    for rank, part in enumerate(np.split(have, RANKS, 1)):
        assert (written(tmp_path / "out", rank, np.uint16) == part).all()


def test_a_flipped_bit_in_any_column_is_found(tmp_path: Path, source: Path) -> None:
    data = bytearray(source.read_bytes())
    known = {source: [Checksum(START, len(data) - START, zlib.crc32(data[START:]), "w")]}
    for number, at in enumerate((START, len(data) // 2, len(data) - 1)):
        data[at] ^= 1
        source.write_bytes(data)
        data[at] ^= 1
        copy, ledger = Copy(tmp_path / f"{number}", ranks(source, "F32"), None), Ledger(known)
        copy.allocate()
        run(copy.tasks(), ledger, 2)
        with pytest.raises(IntegrityError, match="does not match its own checksum"):
            ledger.check()


def test_what_lies_apart_is_read_apart(source: Path) -> None:
    tensor = whole("w", "F32", (ROWS, COLUMNS), source, START)

    def grouped(*parts: Tensor) -> list[int]:
        files = [OutFile(f"{n}", t.nbytes, (Part(0, t, "F32"),)) for n, t in enumerate(parts)]
        return [len(g.places) for g in groups(files)]

    first, second, third = (tensor.part(1, i * 100, (i + 1) * 100) for i in range(3))
    assert grouped(third, first, second) == [3]
    assert grouped(first, third) == [1, 1]
    assert grouped(first, first, second) == [1, 2]
    assert grouped(first.part(0, 0, 10), second.part(0, 10, 20)) == [1, 1]
    assert grouped(tensor, first) == [1, 1]
    wide = whole("w", "F32", (2, CHUNK // 2), source, START)
    assert grouped(*wide.chunk(1, 2)) == [1, 1]
