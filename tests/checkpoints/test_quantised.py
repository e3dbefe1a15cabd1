"""Quantised weights stay as they are, layer by layer, or are refused; never half converted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.checkpoints.conftest import (
    NAMES,
    Array,
    Call,
    TorchRun,
    random_tensors,
    read_safetensors,
    write_safetensors,
)
from tests.checkpoints.models import LLAMA, make, shapes

Tensors = dict[str, tuple[str, Array]]
FP8, GPTQ, NF4 = "F8_E4M3", "gptq", "nf4"


def quantised(folder: Path, kind: str, config: dict[str, Any]) -> Path:
    """A small Llama whose first layer's query alone is quantised, as fine schemes leave others alone."""
    make(folder, {**LLAMA, **config})
    tensors: Tensors = random_tensors(0, "BF16", shapes(LLAMA))
    module = "model.layers.0.self_attn.q_proj"
    del tensors[f"{module}.weight"]
    if kind == FP8:
        tensors[f"{module}.weight"] = (FP8, np.arange(1024, dtype=np.uint8).reshape(32, 32))
        tensors[f"{module}.weight_scale_inv"] = ("F32", np.full((1, 1), 1.2345678, np.float32))
    elif kind == GPTQ:
        tensors[f"{module}.qweight"] = ("U8", np.arange(128, dtype=np.uint8).reshape(4, 32))
        tensors[f"{module}.scales"] = ("F16", np.full((1, 32), 0.3, np.float16))
    else:
        tensors[f"{module}.weight"] = ("U8", np.arange(512, dtype=np.uint64).astype(np.uint8).reshape(512, 1))
        tensors[f"{module}.weight.absmax"] = ("F32", np.full((16,), 1.2345678, np.float32))
    write_safetensors(folder / "model.safetensors", tensors)
    return folder


@pytest.mark.parametrize("kind", [FP8, GPTQ, NF4])
@pytest.mark.parametrize("config", [{"quantization_config": {"quant_method": "x"}}, {}])
def test_a_type_for_quantised_weights_is_refused(
    convert: Call, tmp_path: Path, kind: str, config: dict[str, Any]
) -> None:
    quantised(tmp_path / "model", kind, config)
    code, _, err = convert("model", "-o", "out", "--dtype", "bf16")
    assert code == 2, err
    assert "error[checkpoint-unsupported]: the weights are quantised (" in err
    assert not (tmp_path / "out").exists()


def test_layers_that_differ_are_copied_as_they_are(
    convert: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(NAMES, FP8, np.uint8)
    folder = quantised(tmp_path / "model", FP8, {"quantization_config": {"quant_method": "fp8"}})
    code, _, err = convert("model", "-o", "out")
    assert code == 0, err
    before, after = read_safetensors(folder), read_safetensors(tmp_path / "out")
    assert {n: (k, a.tobytes()) for n, (k, a) in before.items()} == {
        n: (k, a.tobytes()) for n, (k, a) in after.items()
    }
    assert json.loads((tmp_path / "out/config.json").read_text())["torch_dtype"] == "bfloat16"


@pytest.mark.parametrize(("name", "size"), [("F8_E8M0", 1), ("U16", 2), ("U32", 4), ("U64", 8), ("C64", 8)])
def test_every_type_of_safetensors_with_whole_bytes_is_copied(
    convert: Call, tmp_path: Path, name: str, size: int
) -> None:
    (tmp_path / "model").mkdir()
    tensors: Tensors = {"w": (name, np.arange(6 * size, dtype=np.uint8).reshape(6, size))}
    write_safetensors(tmp_path / "model/model.safetensors", tensors)
    raw = (tmp_path / "model/model.safetensors").read_bytes()
    wide, flat = f'"shape": [6, {size}]'.encode(), b'"shape": [6]'
    raw = raw.replace(wide, flat + b" " * (len(wide) - len(flat)))
    (tmp_path / "model/model.safetensors").write_bytes(raw)
    code, _, err = convert("model", "-o", "out")
    assert code == 0, err
    assert (tmp_path / "out/model.safetensors").read_bytes().endswith(raw[-6 * size :])


def _raw(folder: Path) -> dict[str, tuple[object, object, bytes]]:
    """Type, shape and bytes of every tensor, of whatever type."""
    raw = (folder / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    header.pop("__metadata__", None)
    spans = {name: [start + n for n in entry["data_offsets"]] for name, entry in header.items()}
    return {n: (e["dtype"], e["shape"], raw[slice(*spans[n])]) for n, e in header.items()}


@pytest.mark.torch
@pytest.mark.parametrize(("method", "types"), [("fp8", {"F8_E4M3", "F32"}), ("mxfp4", {"F4", "F8_E8M0"})])
def test_torchs_own_narrow_types_are_copied_and_never_rounded(
    convert: Call, torch_run: TorchRun, tmp_path: Path, method: str, types: set[str]
) -> None:
    torch_run("quantised_make.py", tmp_path / "made")
    before = _raw(tmp_path / "made" / method)
    assert {kind for kind, _, _ in before.values()} == {"BF16", *types}
    code, _, err = convert(f"made/{method}", "-o", "out")
    assert code == 0, err
    assert _raw(tmp_path / "out") == before
    assert json.loads((tmp_path / "out/conversion.json").read_text())["shapes"] == "unproven"
    for target, options in (("hf", ("--dtype", "bf16")), ("neox", ()), ("nanotron", ())):
        code, _, err = convert(f"made/{method}", "--to", target, *options, "-o", "other")
        assert (code, (tmp_path / "other").exists()) == (2, False), err


@pytest.mark.parametrize(("shape", "size"), [([6, 3], 8), ([6, 3], 10), ([3, 5], 8), ([-2, -9], 9)])
def test_a_packed_type_has_as_many_bytes_as_its_shape_needs(
    convert: Call, tmp_path: Path, shape: list[int], size: int
) -> None:
    (tmp_path / "model").mkdir()
    entry = {"w": {"dtype": "F4", "shape": shape, "data_offsets": [0, size]}}
    text = json.dumps(entry).encode()
    file = tmp_path / "model/model.safetensors"
    file.write_bytes(len(text).to_bytes(8, "little") + text + bytes(size))
    code, _, err = convert("model", "-o", "out")
    assert (code, f"has {size} bytes where its shape needs" in err) == (7, True), err
