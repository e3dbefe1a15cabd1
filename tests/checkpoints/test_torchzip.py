from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpctrain.errors import IntegrityError
from hpctrain_plugins.checkpoints.containers import safetensors
from hpctrain_plugins.checkpoints.containers.torchzip import open_archive
from hpctrain_plugins.checkpoints.containers.torchzip_write import ZIP64_FROM, Saved, plan_file
from hpctrain_plugins.checkpoints.copying.engine import Copy, run
from hpctrain_plugins.checkpoints.copying.reading import Ledger
from hpctrain_plugins.checkpoints.tensors import Tensor
from tests.checkpoints.conftest import TorchRun, random_tensors, write_safetensors


def content(tensor: Tensor) -> bytes:
    out = b""
    for band in tensor.bands:
        for row in range(band.count):
            for s in band.strips:
                assert s.file is not None
                out += s.file.read_bytes()[s.offset + row * s.stride :][: s.width]
    return out


def write(folder: Path, value: object, zip64_from: int = ZIP64_FROM) -> Path:
    file = plan_file("made.pt", value, zip64_from)
    copy = Copy(folder, [file], None)
    copy.allocate()
    run(copy.tasks(), Ledger({}), 2)
    copy.seal()
    return folder / "made.pt"


@pytest.fixture
def value(tmp_path: Path) -> dict[str, Any]:
    source = tmp_path / "x.safetensors"
    shapes = {"a": (700, 1100), "b": (3,), "c": ()}
    made = {**random_tensors(1, "BF16", shapes)}
    made["n"] = ("I64", np.arange(4))
    made["z"] = ("F32", np.zeros((0, 3), np.float32))
    write_safetensors(source, made)
    tensors = safetensors.read_header(source).tensors
    saved = {k: Saved(t, t.dtype) for k, t in tensors.items()}
    plain = {
        "step": 2**40,
        "lr": 1e-3,
        "none": None,
        "flag": True,
        "list": [1, "é"],
        "tuple": (1, 2),
    }
    return {"module": saved, **plain, "small": -5, "empty": {}}


@pytest.mark.torch
def test_reads_what_torch_wrote(torch_run: TorchRun, tmp_path: Path) -> None:
    want = json.loads(torch_run("torch_files.py", "make", tmp_path / "t.pt"))
    archive = open_archive(tmp_path / "t.pt")
    have = archive.tensors(archive.value)
    assert {k: content(t).hex() for k, t in have.items()} == want
    assert archive.value["step"] == 17
    assert archive.value["nested"]["size"] == (2, 3)
    assert archive.value["nested"]["big"] == 2**40
    turned = open_archive(tmp_path / "t.pt.turned")
    with pytest.raises(IntegrityError, match=r"turned .* is a transposed or repeated view"):
        turned.tensors(turned.value)


@pytest.mark.torch
@pytest.mark.parametrize("limit", [ZIP64_FROM, 1000, 0])
def test_torch_reads_what_we_wrote(
    torch_run: TorchRun, tmp_path: Path, value: dict[str, Any], limit: int
) -> None:
    path = write(tmp_path, value, limit)
    have = json.loads(torch_run("torch_files.py", "load", path))
    assert have["step"] == 2**40
    assert have["list"] == [1, "é"]
    assert have["none"] is None
    assert have["module"]["a"]["shape"] == [700, 1100]
    assert have["module"]["a"]["dtype"] == "torch.bfloat16"
    for name, saved in value["module"].items():
        assert bytes.fromhex(have["module"][name]["raw"]) == content(saved.tensor)


@pytest.mark.parametrize("limit", [ZIP64_FROM, 1000, 0])
def test_reads_what_we_wrote(tmp_path: Path, value: dict[str, Any], limit: int) -> None:
    path = write(tmp_path, value, limit)
    assert zipfile.ZipFile(path).testzip() is None
    archive = open_archive(path)
    have = archive.tensors(archive.value["module"])
    for name, saved in value["module"].items():
        assert content(have[name]) == content(saved.tensor)
        assert have[name].shape == saved.tensor.shape
    again = {k: v for k, v in archive.value.items() if k != "module"}
    assert again == {k: v for k, v in value.items() if k != "module"}


def test_every_entry_starts_on_a_multiple_of_64(tmp_path: Path, value: dict[str, Any]) -> None:
    archive = open_archive(write(tmp_path, value))
    assert {c.offset % 64 for c in archive.crcs} == {0}


def test_a_flipped_bit_is_found_by_the_checksum(tmp_path: Path, value: dict[str, Any]) -> None:
    path = write(tmp_path, value)
    archive = open_archive(path)
    entry = archive.entries["0"]
    raw = bytearray(path.read_bytes())
    raw[entry.offset + 1000] ^= 1
    path.write_bytes(raw)
    ledger = Ledger({path: archive.crcs})
    tensor = archive.tensors(archive.value["module"])["a"]
    file = safetensors.plan_file("o", [("a", tensor, "BF16")], {})
    copy = Copy(tmp_path, [file], None)
    copy.allocate()
    run(copy.tasks(), ledger, 2)
    with pytest.raises(IntegrityError, match=r"archive/data/0 in .*made.pt does not match"):
        ledger.check()


def _insert(path: Path, name: str, data: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"archive/{name}", data)
        archive.writestr("archive/version", "3\n")


EVIL = {
    "global": b"\x80\x02cos\nsystem\n(X\x04\x00\x00\x00truetR.",
    "stack": b"\x80\x04\x8c\x05posix\x8c\x06system\x93.",
    "nested": b"\x80\x02}(X\x04\x00\x00\x00keep](cbuiltins\neval\n)eu.",
    "inst": b"(S'true'\nios\nsystem\n.",
    "dotted": b"\x80\x04\x8c\x05torch\x8c\x0eserialization.\x93.",
    "torch": b"\x80\x02ctorch.hub\nload\n.",
}


@pytest.mark.parametrize("kind", EVIL)
def test_a_pickle_that_names_code_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    _insert(tmp_path / "bad.pt", "data.pkl", EVIL[kind])
    with pytest.raises(IntegrityError, match=r"bad.pt names \w+(\.\w+)*\.?, which no checkpoint needs"):
        open_archive(tmp_path / "bad.pt")


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.999])
def test_a_cut_file_is_refused(tmp_path: Path, value: dict[str, Any], keep: float) -> None:
    path = write(tmp_path, value)
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * keep)])
    with pytest.raises(IntegrityError, match=r"made.pt is not a complete torch file"):
        open_archive(path)


@pytest.mark.parametrize("data", [b"", b"\x80\x02", b"\x80\x02}", b"junk", b"\x80\x02K\x01K\x02R."])
def test_a_broken_pickle_is_refused(tmp_path: Path, data: bytes) -> None:
    _insert(tmp_path / "bad.pt", "data.pkl", data)
    with pytest.raises(IntegrityError, match="holds a pickle that cannot be read"):
        open_archive(tmp_path / "bad.pt")
