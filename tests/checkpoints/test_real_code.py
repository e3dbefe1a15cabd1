"""Our shards are those of GPT-NeoX's and nanotron's own code: `fixtures/README.md` says how it was run."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpctrain_plugins.checkpoints.containers import torchzip
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import Array, read_safetensors
from tests.checkpoints.models import GPT_NEOX, LLAMA, make

FIXTURES = Path(__file__).parent / "fixtures"
NEOX = {**GPT_NEOX, "use_parallel_residual": True}


def written(folder: Path, config: dict[str, Any], layout: str) -> Path:
    """Our files of the fixture's tensors, for two ranks."""
    make(folder / "model", config)
    options = ConvertOptions(tp=2, layout=layout, neox_gqa_layout="concat")
    convert(folder / "model", "neox", folder / "neox", options)
    return folder / "neox"


def numbers(tensors: dict[str, tuple[str, Array]]) -> dict[str, Array]:
    """bf16 as float32, in which a negative zero equals zero: the script adds ranks to 0."""
    wide = {name: bits.astype(np.uint32) << 16 for name, (_, bits) in tensors.items()}
    return {name: bits.view(np.float32) for name, bits in wide.items()}


def shard(file: Path) -> dict[str, bytes]:
    archive = torchzip.open_archive(file)
    raw = file.read_bytes()
    found = {}
    for name, tensor in archive.tensors(archive.value["module"]).items():
        (strip,) = tensor.bands[0].strips
        found[name] = raw[strip.offset : strip.offset + tensor.nbytes]
    return found


@pytest.mark.parametrize("rank", [0, 1])
def test_our_shards_are_those_of_its_sharding_code(tmp_path: Path, rank: int) -> None:
    name = f"mp_rank_{rank:02d}_model_states.pt"
    ours = shard(written(tmp_path, LLAMA, "sequential") / "global_step0" / name)
    theirs = shard(FIXTURES / "neox-sharded/0" / name)
    assert len(theirs) == 3 * 6 + 3
    assert ours == theirs


def test_we_read_what_its_sharding_code_wrote(tmp_path: Path) -> None:
    neox = written(tmp_path, LLAMA, "sequential")
    config = neox / "global_step0/configs/model.yml"
    options = ConvertOptions(config=config, neox_gqa_layout="concat")
    convert(FIXTURES / "neox-sharded", "hf", tmp_path / "back", options)
    have, want = read_safetensors(tmp_path / "back"), read_safetensors(tmp_path / "model")
    assert {n: a.tobytes() for n, (_, a) in have.items()} == {n: a.tobytes() for n, (_, a) in want.items()}


@pytest.mark.parametrize(
    ("kind", "config", "layout"), [("neox", NEOX, "pipelined"), ("llama", LLAMA, "sequential")]
)
def test_its_script_read_from_our_files_what_we_do(
    tmp_path: Path, kind: str, config: dict[str, Any], layout: str
) -> None:
    convert(written(tmp_path, config, layout), "hf", tmp_path / "back", ConvertOptions())
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/model.safetensors").symlink_to(FIXTURES / f"{kind}-read.safetensors")
    ours, theirs = (numbers(read_safetensors(tmp_path / f)) for f in ("back", "theirs"))
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if not np.array_equal(ours[name], theirs[name])] == []


def header(raw: bytes) -> tuple[dict[str, Any], bytes]:
    """What stands in a file of nanotron's; its numbers may be numpy's in words."""
    end = 8 + int.from_bytes(raw[:8], "little")
    said: dict[str, Any] = json.loads(re.sub(rb"np\.int64\((\d+)\)", rb"\1", raw[8:end]))
    return said, raw[end:]


def test_our_shards_are_those_of_nanotrons_serializer(tmp_path: Path) -> None:
    model = make(tmp_path / "model", LLAMA)
    convert(model, "nanotron", tmp_path / "ours", ConvertOptions(tp=2, iteration=10))
    with zipfile.ZipFile(FIXTURES / "nanotron-saved.zip") as archive:
        theirs = {name: header(archive.read(name)) for name in archive.namelist()}
    found = (tmp_path / "ours").rglob("*.safetensors")
    ours = {p.relative_to(tmp_path / "ours").as_posix(): header(p.read_bytes()) for p in found}
    assert len(theirs) == 2 * 4 * 3 + 2 * 3 + 5
    assert ours == theirs


def test_we_read_what_nanotrons_serializer_wrote(tmp_path: Path) -> None:
    model = make(tmp_path / "model", LLAMA)
    convert(model, "nanotron", tmp_path / "saved", ConvertOptions(tp=2, iteration=10))
    with zipfile.ZipFile(FIXTURES / "nanotron-saved.zip") as archive:
        archive.extractall(tmp_path / "saved")
    convert(tmp_path / "saved", "hf", tmp_path / "back", ConvertOptions())
    have, want = read_safetensors(tmp_path / "back"), read_safetensors(model)
    assert {n: a.tobytes() for n, (_, a) in have.items()} == {n: a.tobytes() for n, (_, a) in want.items()}
