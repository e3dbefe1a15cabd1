"""Files of a stranger's checkpoint whose numbers are made to crash a reader or to fill the memory."""

from __future__ import annotations

import json
import resource
import struct
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hpctrain.errors import HpctrainError
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.models import GPT_NEOX, LLAMA, make
from tests.checkpoints.test_evil import one_file

MEMORY = 256 << 20
"""Bytes that a small hostile file may cost at most."""

DEEP = b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
KEYS = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"),
    *("intermediate_size", "head_dim", "rope_theta", "rope_scaling", "max_position_embeddings"),
)
SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
WRONG: tuple[Any, ...] = (0, -1, 10**9, 10**30, 1.5, float("inf"), "3", None, [], {}, True, [10**9])
Harm = Callable[[Path], None]


@pytest.fixture(autouse=True)
def limits() -> Iterator[None]:
    """Memory ends soon, and no reader may raise Python's own limit of depth for good."""
    depth = sys.getrecursionlimit()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)
    assert sys.getrecursionlimit() == depth


def refused(source: Path, target: str) -> HpctrainError | None:
    """What is said of the checkpoint, if anything; any other exception fails the test."""
    out = source.parent / "out"
    try:
        convert(source, target, out, ConvertOptions())
    except HpctrainError as error:
        result = error
    else:
        return None
    assert result.exit_code in (2, 7)
    assert not out.exists()
    return result


@pytest.mark.parametrize("target", ["hf", "neox", "nanotron"])
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_a_number_of_the_configuration(tmp_path: Path, target: str, key: str, value: Any) -> None:
    source = make(tmp_path / "model", LLAMA)
    file = source / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))
    error = refused(source, target)
    assert error is not None or value is None or key not in SIZES


def header(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Write the header of a safetensors file again, as `change` leaves it."""
    data = file.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    document = json.loads(data[8 : 8 + length])
    change(document)
    text = json.dumps(document).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


def one_tensor(**fields: Any) -> Callable[[dict[str, Any]], None]:
    """A change of the header's first tensor."""

    def change(document: dict[str, Any]) -> None:
        next(row for name, row in document.items() if name != "__metadata__").update(fields)

    return change


@pytest.mark.parametrize(
    "fields",
    [
        {"data_offsets": [0.0, 64]}, {"data_offsets": [0, 10**30]}, {"data_offsets": [-8, 0]},
        {"data_offsets": [0]}, {"data_offsets": "01"}, {"data_offsets": None},
        {"shape": [10**12]}, {"shape": [-1, -1]}, {"shape": [2**63, 2**63]}, {"shape": 3}, {"shape": ["x"]},
        {"shape": [1.5]}, {"dtype": "F7"}, {"dtype": None}, {"dtype": []},
    ],
    ids=repr,
)  # fmt: skip
def test_a_number_of_a_header(tmp_path: Path, fields: dict[str, Any]) -> None:
    source = make(tmp_path / "model", LLAMA)
    header(source / "model.safetensors", one_tensor(**fields))
    assert refused(source, "neox") is not None


@pytest.mark.parametrize("name", ["config.json", "model.safetensors.index.json", "conversion.json"])
@pytest.mark.parametrize("text", [DEEP, b"\xff\xfe\x00", b"", b"[]", b"3", b'{"a": 1' + b"0" * 5000 + b"}"])
def test_a_document_that_is_none(tmp_path: Path, name: str, text: bytes) -> None:
    source = make(tmp_path / "model", LLAMA)
    (source / name).write_bytes(text)
    error = refused(source, "neox")
    assert error is not None or name != "config.json"


def test_a_header_nested_too_deeply(tmp_path: Path) -> None:
    source = make(tmp_path / "model", LLAMA)
    (source / "model.safetensors").write_bytes(struct.pack("<Q", len(DEEP)) + DEEP)
    error = refused(source, "hf")
    assert error is not None
    assert "nested too deeply" in str(error)


@pytest.mark.parametrize("entry", ["data.pkl", "byteorder", "version"])
def test_an_entry_that_grows_when_it_is_read(tmp_path: Path, entry: str) -> None:
    source, file = one_file(tmp_path)
    with zipfile.ZipFile(file) as archive:
        entries = {info.filename: archive.read(info) for info in archive.infolist()}
    root = next(iter(entries)).partition("/")[0]
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in entries.items():
            if name != f"{root}/{entry}":
                archive.writestr(name, data)
        info = zipfile.ZipInfo(f"{root}/{entry}")
        info.compress_type = zipfile.ZIP_DEFLATED
        with archive.open(info, "w", force_zip64=True) as grown:
            for _ in range(512):
                grown.write(b"N0" * (1 << 19))
    error = refused(source, "hf")
    assert error is not None
    assert "is compressed" in str(error)


@pytest.mark.parametrize("key", SIZES)
@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_a_number_of_a_neox_configuration(tmp_path: Path, key: str, value: Any) -> None:
    source = make(tmp_path / "model", GPT_NEOX)
    neox = tmp_path / "neox"
    convert(source, "neox", neox, ConvertOptions())
    (file,) = neox.rglob("*.yml")
    text = file.read_text()
    words = {"hidden_size": "hidden_size", "num_hidden_layers": "num_layers"}
    word = words.get(key, "num_attention_heads")
    lines = [f'"{word}": {json.dumps(value)},' if f'"{word}"' in line else line for line in text.splitlines()]
    file.write_text("\n".join(lines))
    (neox / "conversion.json").unlink(missing_ok=True)
    refused(neox, "hf")
