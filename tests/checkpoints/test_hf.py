from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpctrain.errors import ConfigError, HpctrainError, IntegrityError
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.copying import engine
from hpctrain_plugins.checkpoints.copying.reading import Ledger
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import Harm, bf16, random_tensors, read_safetensors, write_safetensors

SHAPES = {
    "embed.weight": (1003, 96),
    "layer.weight": (700, 1100),
    "bias": (7,),
    "scalar": (),
    "none": (0, 4),
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    del_scalar = {k: v for k, v in SHAPES.items() if k not in ("scalar", "none")}
    tensors = random_tensors(1, "F32", del_scalar)
    tensors["scalar"] = ("I64", np.array(7))
    tensors["none"] = ("F32", np.zeros((0, 4), np.float32))
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text('{"model_type": "toy", "torch_dtype": "float32"}')
    (folder / "tokenizer.json").write_text("{}")
    return folder


def test_shards_hold_the_same_bytes_and_the_record_says_so(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ConvertOptions(shard_bytes=2_000_000, verify="roundtrip")
    report = convert(source, "hf", out, options)
    before, after = read_safetensors(source), read_safetensors(out)
    assert sorted(p.name for p in out.glob("*.safetensors")) == [
        "model-00001-of-00003.safetensors",
        "model-00002-of-00003.safetensors",
        "model-00003-of-00003.safetensors",
    ]
    assert {k: v[1].tobytes() for k, v in before.items()} == {k: v[1].tobytes() for k, v in after.items()}
    assert report.exactness == "exact"
    record = json.loads((out / "conversion.json").read_text())
    crcs = {row["name"]: row["crc32"] for row in record["mapping"]}
    assert crcs == {k: f"{zlib.crc32(v[1].tobytes()):08x}" for k, v in after.items()}
    assert (out / "tokenizer.json").read_text() == "{}"
    index = json.loads((out / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == sum(v[1].nbytes for v in after.values())


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize(
    ("said", "workers"),
    [({}, None), ({"fsync": False}, [2, 1]), ({"dtype": "bf16"}, [2, 2]), ({"threads": 3}, [3, 3])],
)
def test_one_thread_moves_bytes_in_memory_and_two_compute_or_wait_for_a_disk(
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    said: dict[str, Any],
    workers: list[int] | None,
    local: bool,
) -> None:
    seen = []

    def spied(tasks: Iterator[engine.Task], ledger: Ledger, threads: int) -> None:
        seen.append(threads)
        engine.run(tasks, ledger, threads)

    monkeypatch.setattr("hpctrain_plugins.checkpoints.work.run", spied)
    monkeypatch.setattr("hpctrain_plugins.checkpoints.work.is_local", lambda folder: local)
    convert(source, "hf", tmp_path / "out", ConvertOptions(**said))
    # of replicas, which are compared, and of the copy
    assert seen == (workers or [2, 2 if local else 1])


def test_fp32_to_bf16_rounds_to_nearest_even(source: Path, tmp_path: Path) -> None:
    report = convert(source, "hf", tmp_path / "out", ConvertOptions(dtype="bf16", verify="roundtrip"))
    before, after = read_safetensors(source), read_safetensors(tmp_path / "out")
    for name, (dtype, array) in before.items():
        if dtype != "F32":
            assert after[name][0] == dtype
            continue
        bits = array.reshape(-1).view(np.uint32).astype(np.uint64)
        want = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        assert (after[name][1].reshape(-1) == want).all()
    assert report.exactness == "rounded"
    assert json.loads((tmp_path / "out/config.json").read_text())["torch_dtype"] == "bfloat16"


def test_bf16_widened_is_exact(source: Path, tmp_path: Path) -> None:
    convert(source, "hf", tmp_path / "half", ConvertOptions(dtype="bf16"))
    report = convert(tmp_path / "half", "hf", tmp_path / "wide", ConvertOptions(dtype="fp32"))
    half, wide = read_safetensors(tmp_path / "half"), read_safetensors(tmp_path / "wide")
    assert report.exactness == "exact"
    assert (bf16(wide["layer.weight"][1]) == half["layer.weight"][1]).all()


@pytest.mark.parametrize(("dtype", "value"), [("fp16", 70000.0), ("bf16", 3.4e38)])
def test_a_number_too_large_for_the_type_is_refused(tmp_path: Path, dtype: str, value: float) -> None:
    source = tmp_path / "source"
    source.mkdir()
    write_safetensors(
        source / "model.safetensors",
        {"big.weight": ("F32", np.array([1, np.inf, value], np.float32))},
    )
    with pytest.raises(IntegrityError, match=r"big.weight holds .* cannot hold"):
        convert(source, "hf", tmp_path / "out", ConvertOptions(dtype=dtype))
    assert [p.name for p in tmp_path.iterdir()] == ["source"]


def test_infinities_and_nans_stay(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    odd = np.array([np.inf, -np.inf, np.nan, 1e-40], np.float32)
    write_safetensors(source / "model.safetensors", {"w": ("F32", odd)})
    convert(source, "hf", tmp_path / "out", ConvertOptions(dtype="bf16"))
    assert read_safetensors(tmp_path / "out")["w"][1].tolist() == [0x7F80, 0xFF80, 0x7FC0, 1]


def _truncate(source: Path) -> str:
    file = source / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    return "model.safetensors has .* bytes where its header says"


def _lost_shard(source: Path) -> str:
    (source / "model.safetensors").rename(source / "model-00001-of-00002.safetensors")
    names = {"bias": "model-00001-of-00002.safetensors", "x": "model-00002-of-00002.safetensors"}
    (source / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    return "model-00002-of-00002.safetensors is missing"


def _escaping(source: Path) -> str:
    (source / "model.safetensors").rename(source / "x.safetensors")
    names = {"bias": "../../etc/passwd"}
    (source / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    return "names the file '../../etc/passwd'"


def _index_lies(source: Path) -> str:
    (source / "model.safetensors").rename(source / "x.safetensors")
    names = dict.fromkeys([*SHAPES, "ghost"], "x.safetensors")
    (source / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    return "ghost is in the index but in no file"


def _bad_header(source: Path) -> str:
    file = source / "model.safetensors"
    file.write_bytes(b"\xff" * 8 + file.read_bytes()[8:])
    return "ends inside its header"


def _overlapping(source: Path) -> str:
    file = source / "model.safetensors"
    tensors = {n: ("F32", np.zeros((2, 2), np.float32)) for n in ("a", "b")}
    write_safetensors(file, tensors)
    raw = file.read_bytes()
    file.write_bytes(raw.replace(b'"data_offsets": [16, 32]', b'"data_offsets": [ 0, 16]'))
    return "model.safetensors has a gap or an overlap in front of b"


def _nothing(source: Path) -> str:
    (source / "model.safetensors").unlink()
    return "is not a checkpoint of a known format"


@pytest.mark.parametrize(
    "harm", [_truncate, _lost_shard, _escaping, _index_lies, _bad_header, _overlapping, _nothing]
)
def test_damage_is_named_and_leaves_nothing(source: Path, tmp_path: Path, harm: Harm) -> None:
    message = harm(source)
    with pytest.raises(HpctrainError, match=message) as caught:
        convert(source, "hf", tmp_path / "out", ConvertOptions())
    assert caught.value.exit_code in (2, 7)
    assert [p.name for p in tmp_path.iterdir()] == ["source"]


def test_a_taken_name_is_refused_and_left_alone(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(ConfigError, match="exists already"):
        convert(source, "hf", tmp_path / "out", ConvertOptions())
    assert list((tmp_path / "out").iterdir()) == []


def test_a_dry_run_writes_nothing_and_shows_the_mapping(source: Path, tmp_path: Path) -> None:
    report = convert(source, "hf", tmp_path / "out", ConvertOptions(dry_run=True))
    assert {row["name"] for row in report.mapping} == set(SHAPES)
    assert not (tmp_path / "out").exists()


def test_progress_counts_every_byte(source: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    convert(source, "hf", tmp_path / "out", ConvertOptions(), lambda *a: seen.append(a))
    weights = sum(v[1].nbytes for v in read_safetensors(source).values())
    assert max(s[0] for s in seen) == weights
    assert {s[2] for s in seen} == {"model.safetensors"}
