"""Pickles that run a program when Python reads them, inside the files of Hugging Face and peft: none runs."""

from __future__ import annotations

import json
import pickle
import struct
import zipfile
from pathlib import Path

import pytest

from hpctrain.errors import HpctrainError
from hpctrain_plugins.checkpoints.containers import safetensors, torchzip_write
from hpctrain_plugins.checkpoints.containers.torchzip_write import Saved
from hpctrain_plugins.checkpoints.containers.unpickle import load
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.copying.engine import Copy, run
from hpctrain_plugins.checkpoints.copying.reading import Ledger
from hpctrain_plugins.checkpoints.formats import hf
from hpctrain_plugins.checkpoints.formats.zero_files import stage_number
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import read_safetensors
from tests.checkpoints.models import LLAMA, make
from tests.checkpoints.test_peft import adapter

Bomb = tuple[str, bytes]
"""What the error must name, and a pickled value that touches the file RAN when Python reads it."""


def text(said: str) -> bytes:
    return b"X" + struct.pack("<I", len(said)) + said.encode()


COMMAND = text("touch RAN")
SYSTEM = b"cposix\nsystem\n"
CALL = SYSTEM + b"(" + COMMAND + b"tR"
BOMBS: dict[str, Bomb] = {
    "global": ("posix.system", CALL),
    "stack-global": ("posix.system", b"\x8c\x05posix\x8c\x06system\x93" + COMMAND + b"\x85R"),
    "inst": ("posix.system", b"(" + COMMAND + b"iposix\nsystem\n"),
    "obj": ("posix.system", b"(" + SYSTEM + COMMAND + b"o"),
    "eval": ("builtins.eval", b"cbuiltins\neval\n(" + text("open('RAN', 'w').close()") + b"tR"),
    "getattr": (
        "posix.system",
        b"cbuiltins\ngetattr\n(" + SYSTEM + text("__call__") + b"tR" + CALL[len(SYSTEM) :],
    ),
    "state": ("posix.system", b"ccollections\nOrderedDict\n)R}" + text("k") + CALL + b"sb"),
    "deep": ("posix.system", b"]" * 5000 + CALL + b"a" * 5000),
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the file would appear."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pickled(folder: Path, name: str) -> Path:
    """The weights of a folder as torch would save them, in place of its safetensors."""
    old = next(folder.glob("*.safetensors"))
    tensors = safetensors.read_header(old).tensors
    planned = torchzip_write.plan_file(name, {k: Saved(t, t.dtype) for k, t in tensors.items()})
    copy = Copy(folder, [planned], None)
    copy.allocate()
    run(copy.tasks(), Ledger({}), 1)
    copy.seal()
    old.unlink()
    return folder / name


def arm(file: Path, bomb: bytes) -> None:
    """Add the value under a key that no reader looks at."""
    with zipfile.ZipFile(file) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in entries.items():
            armed = data[:-1] + text("other") + bomb + b"s." if name.endswith("/data.pkl") else data
            archive.writestr(name, armed)


def one_file(place: Path) -> tuple[Path, Path]:
    source = make(place / "model", LLAMA)
    return source, pickled(source, "pytorch_model.bin")


def a_shard(place: Path) -> tuple[Path, Path]:
    source = make(place / "model", LLAMA)
    name = "pytorch_model-00001-of-00001.bin"
    names = hf.read(source, ConvertOptions()).tensors
    file = pickled(source, name)
    index = {"weight_map": dict.fromkeys(names, name)}
    (source / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    return source, file


def an_adapter(place: Path) -> tuple[Path, Path]:
    source = adapter(place)
    return source, pickled(source, "adapter_model.bin")


def its_base(place: Path) -> tuple[Path, Path]:
    source = adapter(place)
    return source, pickled(place / "base", "pytorch_model.bin")


@pytest.mark.parametrize("where", [one_file, a_shard, an_adapter, its_base], ids=lambda w: w.__name__)
def test_no_bomb_goes_off_in_any_file(here: Path, where: object) -> None:
    assert callable(where)
    source, file = where(here)
    before = file.read_bytes()
    convert(source, "hf", here / "fine", ConvertOptions())
    for kind, (named, bomb) in BOMBS.items():
        pickle.loads(b"\x80\x04" + bomb + b".")
        assert (here / "RAN").exists(), f"{kind} is no bomb"
        (here / "RAN").unlink()
        arm(file, bomb)
        with pytest.raises(HpctrainError) as caught:
            convert(source, "hf", here / "out", ConvertOptions())
        (problem,) = caught.value.problems
        assert (caught.value.exit_code, problem.code, problem.where) == (7, "checkpoint-unsafe", str(file))
        assert problem.message == f"{file} names {named}, which no checkpoint needs; nothing was run"
        assert not (here / "RAN").exists(), kind
        assert not (here / "out").exists()
        file.write_bytes(before)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "adapter_model.bin"])
def test_a_bare_pickle_is_no_torch_file(here: Path, name: str) -> None:
    source, file = one_file(here) if name.startswith("pytorch") else an_adapter(here)
    file.write_bytes(b"\x80\x02" + BOMBS["global"][1] + b".")
    with pytest.raises(HpctrainError, match=rf"{name} is not a complete torch file") as caught:
        convert(source, "hf", here / "out", ConvertOptions())
    assert (caught.value.exit_code, (here / "RAN").exists()) == (7, False)


def test_a_file_cannot_change_how_the_next_one_is_read(here: Path) -> None:
    """A pickle may set the state of what it names: of the types of storages, which all files share."""
    other = b"\x80\x02ctorch\nBFloat16Storage\n" + text("HalfStorage") + b"\x85b."
    with pytest.raises(HpctrainError, match="holds a pickle that cannot be read"):
        load(other, "it")
    source, _ = one_file(here)
    convert(source, "hf", here / "out", ConvertOptions())
    assert {dtype for dtype, _ in read_safetensors(here / "out").values()} == {"BF16"}


@pytest.mark.parametrize("module", [b"builtins", b"__builtin__"])
def test_a_member_of_an_enumeration_is_read_as_python_3_11_0_writes_it(module: bytes) -> None:
    enumeration = b"cdeepspeed.runtime.zero.config\nZeroStageEnum\n"
    by_name = load(b"c" + module + b"\ngetattr\n(" + enumeration + text("weights") + b"tR.", "a file")
    by_number = load(enumeration + b"(I3\ntR.", "a file")
    assert [type(by_name).__name__, type(by_number).__name__] == ["ZeroStageEnum"] * 2
    assert [stage_number(by_name), stage_number(by_number)] == [3, 3]


@pytest.mark.parametrize("owner", [b"ccollections\nOrderedDict\n", b"ctorch\nfloat32\n", b"N"])
def test_no_attribute_of_anything_else_is_read(owner: bytes) -> None:
    with pytest.raises(HpctrainError) as caught:
        load(b"cbuiltins\ngetattr\n(" + owner + text("__class__") + b"tR.", "a file")
    assert (caught.value.exit_code, caught.value.problems[0].code) == (7, "checkpoint-damaged")
