"""Megatron-Core's distributed checkpoints without Megatron: there and back, damage, refusals, size."""

from __future__ import annotations

import json
import math
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hpctrain.errors import HpctrainError
from hpctrain_plugins.checkpoints.containers import distcp_write, torchzip_write
from hpctrain_plugins.checkpoints.containers.distcp_write import Stored
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.formats.hf.families import FAMILIES
from hpctrain_plugins.checkpoints.formats.megatron import settings, write
from hpctrain_plugins.checkpoints.options import LAYER_KEYS, ConvertOptions
from tests.checkpoints.conftest import (
    ROOT,
    Call,
    Harm,
    read_safetensors,
)
from tests.checkpoints.models import LLAMA, make, make_family

_SPARSE = {"num_experts_per_tok": 2}
_MODELS: dict[str, dict[str, Any]] = {
    "llama": {**LLAMA, "attention_bias": True, "mlp_bias": True},
    "mistral": {**LLAMA, "model_type": "mistral"},
    "qwen2": {**LLAMA, "model_type": "qwen2", "tie_word_embeddings": True},
    "qwen3": {**LLAMA, "model_type": "qwen3", "head_dim": 16},
    "mixtral": {**LLAMA, **_SPARSE, "model_type": "mixtral", "num_local_experts": 4},
    "qwen3_moe": {
        **LLAMA,
        **_SPARSE,
        "model_type": "qwen3_moe",
        "head_dim": 16,
        "num_experts": 4,
        "moe_intermediate_size": 16,
        "norm_topk_prob": True,
    },
}


@pytest.mark.parametrize("tp", [1, 2])
@pytest.mark.parametrize("name", _MODELS)
@pytest.mark.parametrize("form", LAYER_KEYS)
def test_there_and_back_is_exact(tmp_path: Path, name: str, tp: int, form: str) -> None:
    source = make_family(tmp_path / "hf", _MODELS[name])
    options = ConvertOptions(verify="roundtrip", tp=tp, layer_keys=form)
    report = convert(source, "megatron", tmp_path / "megatron", options)
    assert (report.exactness, report.shapes) == ("exact", "configuration")
    convert(tmp_path / "megatron", "hf", tmp_path / "back", ConvertOptions())
    want, have = read_safetensors(source), read_safetensors(tmp_path / "back")
    assert {n: a.tobytes() for n, (_, a) in have.items()} == {n: a.tobytes() for n, (_, a) in want.items()}
    back = json.loads((tmp_path / "back/config.json").read_text())
    config = _MODELS[name]
    keys = ("num_key_value_heads", "head_dim", "rope_theta", "tie_word_embeddings", "vocab_size")
    assert {k: back[k] for k in keys if k in config} == {k: config[k] for k in keys if k in config}
    assert back["model_type"] == ("llama" if name == "mistral" else name)


def test_a_step_has_the_name_that_megatron_looks_for(tmp_path: Path) -> None:
    source = make(tmp_path / "hf", LLAMA)
    convert(source, "megatron", tmp_path / "released", ConvertOptions())
    convert(source, "megatron", tmp_path / "trained", ConvertOptions(iteration=1000))
    tracker = "latest_checkpointed_iteration.txt"
    assert (tmp_path / "released" / tracker).read_text() == "release"
    assert (tmp_path / "trained" / tracker).read_text() == "1000"
    assert (tmp_path / "trained/iter_0001000/.metadata").is_file()
    assert (tmp_path / "released/release/common.pt").is_file()


def test_the_vocabulary_is_padded_and_its_true_size_known(tmp_path: Path) -> None:
    source = make(tmp_path / "hf", LLAMA)  # 160 words
    convert(source, "megatron", tmp_path / "megatron", ConvertOptions())
    report = convert(tmp_path / "megatron", "hf", tmp_path / "back", ConvertOptions())
    assert report.decisions["vocab_rows_dropped"] == 96
    (tmp_path / "megatron/conversion.json").unlink()
    report = convert(tmp_path / "megatron", "hf", tmp_path / "padded", ConvertOptions())
    assert read_safetensors(tmp_path / "padded")["lm_head.weight"][1].shape == (256, 32)
    assert any("256 rows, as Megatron padded it; --config FILE" in line for line in report.warnings)
    config = ConvertOptions(config=source / "config.json")
    convert(tmp_path / "megatron", "hf", tmp_path / "told", config)
    assert read_safetensors(tmp_path / "told")["lm_head.weight"][1].shape == (160, 32)


def _lost_file(step: Path) -> str:
    (step / "__0_0.distcp").unlink()
    return "__0_0.distcp is missing"


def _cut_file(step: Path) -> str:
    file = step / "__0_0.distcp"
    file.write_bytes(file.read_bytes()[:-900])
    return "__0_0.distcp at .* is not a complete torch file"


def _flipped(step: Path) -> str:
    file = step / "__0_0.distcp"
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 4
    file.write_bytes(raw)
    return "__0_0.distcp"


def _evil_directory(step: Path) -> str:
    (step / ".metadata").write_bytes(b"\x80\x04\x8c\x02os\x8c\x06system\x93.")
    return "names os.system, which no checkpoint needs"


def _no_common(step: Path) -> str:
    (step / "common.pt").unlink()
    return "common.pt is missing"


def _strange_tracker(step: Path) -> str:
    (step.parent / "latest_checkpointed_iteration.txt").write_text("../../etc")
    return "where Megatron-LM writes a number or release"


def _renamed(old: bytes, new: bytes) -> Harm:
    """A key of the directory under another name of the same length."""

    def harm(step: Path) -> str:
        raw = (step / ".metadata").read_bytes()
        assert raw.count(old)
        assert len(old) == len(new)
        (step / ".metadata").write_bytes(raw.replace(old, new))
        return f"{new.decode()}.* (has no place|has no data|is missing)|missing"

    return harm


_HARMS = {
    **{harm.__name__: harm for harm in (_lost_file, _cut_file, _flipped, _evil_directory, _no_common)},
    "_strange_tracker": _strange_tracker,
    "_another_tensor": _renamed(b"mlp.linear_fc2.weight", b"mlp.linear_fc9.weight"),
    "_another_outer": _renamed(b"final_layernorm", b"first_layernorm"),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    convert(make(folder / "hf", LLAMA), "megatron", folder / "megatron", ConvertOptions())
    return folder / "megatron"


@pytest.mark.parametrize("harm", _HARMS.values(), ids=_HARMS)
def test_damage_is_named_and_leaves_nothing(written: Path, tmp_path: Path, harm: Harm) -> None:
    shutil.copytree(written, tmp_path / "m")
    message = harm(tmp_path / "m/release")
    with pytest.raises(HpctrainError, match=message):
        convert(tmp_path / "m", "hf", tmp_path / "out", ConvertOptions())
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_an_optimizers_weights_that_are_not_there_are_asked_for_in_vain(
    written: Path, convert: Call, tmp_path: Path
) -> None:
    code, _, err = convert(written, "--masters", "-o", "out")
    assert (code, "it was saved without an optimizer" in err) == (2, True), err
    assert "--dist-ckpt-optim-fully-reshardable" in err


def _with_optimizer(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """What is written next has fp32 weights under the keys of Megatron's optimizer: a stand-in."""

    def files(tensors: dict[str, Stored], *rest: Any) -> Any:
        masters = {f"optimizer.state.param.{k}": Stored(s.shape, "F32", s.boxes) for k, s in tensors.items()}
        return distcp_write.plan_files({**tensors, **masters}, *rest)

    plan_file = torchzip_write.plan_file

    def common(name: str, value: Any) -> Any:
        value["content_metadata"]["distrib_optim_sharding_type"] = kind
        return plan_file(name, value)

    monkeypatch.setattr(write, "plan_files", files)
    monkeypatch.setattr(torchzip_write, "plan_file", common)


def test_the_optimizers_weights_are_read_by_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make(tmp_path / "hf", LLAMA)
    _with_optimizer(monkeypatch, "fully_reshardable")
    convert(source, "megatron", tmp_path / "m", ConvertOptions())
    monkeypatch.undo()
    report = convert(tmp_path / "m", "hf", tmp_path / "out", ConvertOptions(masters=True))
    want, have = read_safetensors(source), read_safetensors(tmp_path / "out")
    assert {n: dtype for n, (dtype, _) in have.items()} == dict.fromkeys(want, "F32")
    assert all((a.view("u4") >> 16 == want[n][1]).all() for n, (_, a) in have.items())
    assert report.ignored["everything else"].endswith("; the optimizer's layout is fully_reshardable")


def test_an_optimizer_of_buckets_is_refused_with_its_layout(
    convert: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "hf", LLAMA)
    _with_optimizer(monkeypatch, "dp_reshardable")
    assert convert("hf", "--to", "megatron", "--verify", "none", "-o", "m")[0] == 0
    monkeypatch.undo()
    code, _, err = convert(tmp_path / "m", "--masters", "-o", tmp_path / "out")
    assert (code, "layout is dp_reshardable, which does not name the weights" in err) == (2, True), err
    assert convert(tmp_path / "m", "-o", tmp_path / "out")[0] == 0


_ARGS = settings.from_hf(LLAMA, 160, 0)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("multi_latent_attention", True),
        ("normalization", "LayerNorm"),
        ("position_embedding_type", "learned_absolute"),
        ("swiglu", False),
        ("rotary_percent", 0.5),
        ("apply_layernorm_1p", True),
        ("window_size", (128, 0)),
        ("mtp_num_layers", 1),
        ("rotary_seq_len_interpolation_factor", 4),
    ],
)
def test_what_no_family_computes_is_refused_by_its_argument(key: str, value: object, tmp_path: Path) -> None:
    assert settings.to_hf(_ARGS, tmp_path)["model_type"] == "llama"
    with pytest.raises(HpctrainError, match=key) as caught:
        settings.to_hf({**_ARGS, key: value}, tmp_path)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_act": "gelu"}, "no hidden_act 'gelu'"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "no rope_type yarn"),
        (
            {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 2.0}},
            "no low_freq_factor 2.0",
        ),
        ({"attention_bias": True}, "no attention_bias True"),
        ({"model_type": "gemma2"}, r"gemma2 models \(.*\) are not written for Megatron; llama"),
    ],
)
def test_what_megatron_cannot_hold_is_refused(change: dict[str, Any], message: str) -> None:
    from hpctrain_plugins.checkpoints.formats import megatron
    from hpctrain_plugins.checkpoints.tensors import Model, zeros

    config = {**LLAMA, **change}
    names = {"model.embed_tokens.weight": (160, 32)}
    model = Model({n: zeros(n, "BF16", s) for n, s in names.items()}, config=config)
    with pytest.raises(HpctrainError, match=message):
        megatron.plan(model, ConvertOptions())


_LLAMA_405B = {
    **LLAMA,
    "vocab_size": 128256,
    "hidden_size": 16384,
    "num_hidden_layers": 126,
    "num_attention_heads": 128,
    "num_key_value_heads": 8,
    "intermediate_size": 53248,
}
_MEASURE = """
import sys, time
from pathlib import Path
from hpctrain_plugins.checkpoints.formats import hf, megatron
from hpctrain_plugins.checkpoints.options import ConvertOptions
first, then = (hf, megatron) if sys.argv[2] == "megatron" else (megatron, hf)
began = time.process_time()
model = first.read(Path(sys.argv[1]), ConvertOptions())
output = then.plan(model, ConvertOptions(tp=8))
most = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(time.process_time() - began, int(most.split()[1]) // 1024, model.parameters)
if sys.argv[2] == "megatron":
    for file in output.files:
        path = Path(sys.argv[3]) / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as out:
            out.truncate(file.size)
            for at, text in (*file.texts, *file.seal([0] * len(file.parts))):
                out.seek(at)
                out.write(text)
    for name, text in output.texts.items():
        (Path(sys.argv[3]) / name).write_bytes(text)
"""


def _sparse(folder: Path, config: dict[str, Any]) -> Path:
    """A whole model of holes: headers as they would be, and no byte of a tensor on the disk."""
    folder.mkdir()
    family = FAMILIES[config["model_type"]]
    layers = range(config["num_hidden_layers"])
    outer = {n: s for n, s in family.outer(config, headless=False).items() if s}
    inner = [{f"model.layers.{i}.{n}": s for n, s in family.of_layer(config).items()} for i in layers]
    for number, shapes in enumerate((outer, *inner), 1):
        header, at = {}, 0
        for name, shape in shapes.items():
            size = 2 * math.prod(shape)
            header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header).encode()
        with (folder / f"model-{number:05d}-of-{1 + len(layers):05d}.safetensors").open("wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.truncate(8 + len(text) + at)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_405_billion_parameters_are_planned_in_seconds_and_little_memory(tmp_path: Path) -> None:
    """By files with holes: as much is read of them as of a whole model, in boxes for tp 8."""
    source = _sparse(tmp_path / "hf", _LLAMA_405B)
    there = tmp_path / "megatron"
    env = {**os.environ, "PYTHONPATH": f"{ROOT}/core:{ROOT}/plugins"}
    padded = 405853388800 + 2 * 16384 * (-128256 % (128 * 8))
    for folder, target, count in ((source, "megatron", 405853388800), (there, "hf", padded)):
        command = [sys.executable, "-c", _MEASURE, str(folder), target, str(there)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=env)
        assert done.returncode == 0, done.stderr
        seconds, megabytes, parameters = done.stdout.split()
        assert (int(parameters), float(seconds) < 5, int(megabytes) < 200) == (count, True, True)
