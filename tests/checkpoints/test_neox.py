from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from hpctrain.errors import ConfigError, HpctrainError, IntegrityError
from hpctrain_plugins.checkpoints.containers import torchzip
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.formats import neox
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import Harm, read_safetensors
from tests.checkpoints.models import GPT_NEOX, LLAMA, make
from tests.checkpoints.test_torchzip import content

MODELS = {
    "sequential-residual": GPT_NEOX,
    "parallel-residual": {**GPT_NEOX, "use_parallel_residual": True},
    "tied": {**GPT_NEOX, "tie_word_embeddings": True},
    "llama-grouped": LLAMA,
    "llama-plain": {**LLAMA, "num_key_value_heads": 8},
    "odd-vocabulary": {**GPT_NEOX, "vocab_size": 157},
}


def there_and_back(tmp_path: Path, config: dict[str, Any], dtype: str = "BF16", **options: Any) -> None:
    source = make(tmp_path / "source", config, dtype)
    chosen = ConvertOptions(verify="roundtrip", iteration=7, threads=2, **options)
    convert(source, "neox", tmp_path / "neox", chosen)
    convert(tmp_path / "neox", "hf", tmp_path / "back", ConvertOptions(verify="roundtrip"))
    before, after = read_safetensors(source), read_safetensors(tmp_path / "back")
    assert {k: (d, a.shape) for k, (d, a) in before.items()} == {
        k: (d, a.shape) for k, (d, a) in after.items()
    }
    assert {k: a.tobytes() for k, (_, a) in before.items()} == {k: a.tobytes() for k, (_, a) in after.items()}
    back = json.loads((tmp_path / "back/config.json").read_text())
    assert {k: back.get(k, v) for k, v in config.items()} == config


@pytest.mark.parametrize("tp", [1, 2, 4])
@pytest.mark.parametrize("kind", MODELS)
def test_hf_to_neox_and_back_is_identical(tmp_path: Path, kind: str, tp: int) -> None:
    there_and_back(tmp_path, MODELS[kind], tp=tp)


@pytest.mark.parametrize("dtype", ["F16", "F32"])
@pytest.mark.parametrize("naming", ["legacy", "new", "te"])
@pytest.mark.parametrize("layout", ["pipelined", "sequential"])
def test_every_naming_and_layout_is_identical(tmp_path: Path, naming: str, layout: str, dtype: str) -> None:
    there_and_back(tmp_path, MODELS["parallel-residual"], dtype, naming=naming, layout=layout, tp=2)


@pytest.mark.parametrize("naming", ["legacy", "new"])
@pytest.mark.parametrize("order", ["concat", "per-head"])
def test_both_orders_of_grouped_heads_are_identical(tmp_path: Path, order: str, naming: str) -> None:
    there_and_back(tmp_path, LLAMA, neox_gqa_layout=order, naming=naming, tp=2)


def test_sharded_shapes_divide_every_matrix(tmp_path: Path) -> None:
    """TransformerEngine's names with tp 2 are where another converter writes whole tensors."""
    source = make(tmp_path / "source", GPT_NEOX)
    convert(source, "neox", tmp_path / "neox", ConvertOptions(tp=2, naming="te"))
    archive = torchzip.open_archive(tmp_path / "neox/global_step0/layer_02-model_01-model_states.pt")
    found = {k: t.shape for k, t in archive.tensors(archive.value).items()}
    assert found == {
        "input_layernorm.weight": (32,),
        "input_layernorm.bias": (32,),
        "mlp.layer_norm_weight": (32,),
        "mlp.layer_norm_bias": (32,),
        "attention.qkv.weight": (48, 32),
        "attention.qkv.bias": (48,),
        "attention.proj.weight": (32, 16),
        "attention.proj.bias": (32,),
        "mlp.fc1_weight": (32, 32),
        "mlp.fc1_bias": (32,),
        "mlp.fc2_weight": (32, 32),
        "mlp.fc2_bias": (32,),
    }


@pytest.mark.parametrize(("parallel", "want"), [(True, 0.0), (False, 1.0)])
def test_row_biases_are_whole_on_rank_0_or_on_every_rank(tmp_path: Path, parallel: bool, want: float) -> None:
    source = make(tmp_path / "source", {**GPT_NEOX, "use_parallel_residual": parallel}, "F32")
    convert(source, "neox", tmp_path / "neox", ConvertOptions(tp=2, naming="legacy"))
    ranks = []
    for rank in (0, 1):
        archive = torchzip.open_archive(
            tmp_path / f"neox/global_step0/layer_02-model_{rank:02d}-model_states.pt"
        )
        tensor = archive.tensors(archive.value)["attention.dense.bias"]
        ranks.append(np.frombuffer(content(tensor), np.float32))
    bias = read_safetensors(source)["gpt_neox.layers.0.attention.dense.bias"][1]
    assert (ranks[0] == bias).all()
    assert (ranks[1] == bias * want).all()


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    source = make(tmp_path / "source", GPT_NEOX)
    convert(source, "neox", tmp_path / "neox", ConvertOptions(tp=2, iteration=5))
    return tmp_path / "neox"


def _settings(trained: Path, **changes: Any) -> None:
    file = trained / "global_step5/configs/model.yml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **changes}))


def _lose_rank(trained: Path) -> str:
    (trained / "global_step5/layer_03-model_01-model_states.pt").unlink()
    return "layer_03-model_01-model_states.pt is missing"


def _lose_layer(trained: Path) -> str:
    for path in trained.glob("global_step5/layer_03-*"):
        path.unlink()
    return "layer 3 is missing"


def _lose_head(trained: Path) -> str:
    for path in trained.glob("global_step5/layer_07-*"):
        path.unlink()
    return "layer 7 is missing"


def _stale_rank(trained: Path) -> str:
    for path in trained.glob("global_step5/layer_*-model_00-*"):
        (path.parent / path.name.replace("model_00", "model_02")).write_bytes(path.read_bytes())
    return "has 3 ranks where its configuration says 2"


def _stale_layer(trained: Path) -> str:
    for path in trained.glob("global_step5/layer_02-*"):
        (path.parent / path.name.replace("layer_02", "layer_09")).write_bytes(path.read_bytes())
    return "has a layer 9 that its configuration does not know"


def _wrong_latest(trained: Path) -> str:
    (trained / "latest").write_text("global_step9")
    return "latest names global_step9, which holds no checkpoint"


def _escaping_latest(trained: Path) -> str:
    (trained / "latest").write_text("../elsewhere")
    return "names the file '../elsewhere'"


def _two_tags(trained: Path) -> str:
    (trained / "latest").unlink()
    (trained / "global_step6").symlink_to("global_step5")
    return "holds several checkpoints: global_step5, global_step6"


def _wrong_config(trained: Path) -> str:
    _settings(trained, hidden_size=40)
    return "sets hidden_size 40, and the checkpoint was saved with 32"


def _gpt_j_tied(trained: Path) -> str:
    _settings(trained, gpt_j_tied=True)
    return "gpt_j_tied has no equal"


def _replica(trained: Path) -> str:
    path = trained / "global_step5/layer_02-model_01-model_states.pt"
    archive = torchzip.open_archive(path)
    entry = archive.tensors(archive.value)["input_layernorm.weight"].bands[0].strips[0]
    raw = bytearray(path.read_bytes())
    raw[entry.offset] ^= 1
    path.write_bytes(raw)
    return "gpt_neox.layers.0.input_layernorm.weight differs between ranks"


def _flip(trained: Path) -> str:
    path = trained / "global_step5/layer_02-model_01-model_states.pt"
    archive = torchzip.open_archive(path)
    entry = archive.tensors(archive.value)["attention.query_key_value.weight"].bands[0].strips[0]
    raw = bytearray(path.read_bytes())
    raw[entry.offset + 99] ^= 16
    path.write_bytes(raw)
    return "layer_02-model_01-model_states.pt does not match its own checksum"


def _truncate(trained: Path) -> str:
    path = trained / "global_step5/layer_04-model_00-model_states.pt"
    path.write_bytes(path.read_bytes()[:-1])
    return "layer_04-model_00-model_states.pt is not a complete torch file"


HARM = (
    _lose_rank,
    _lose_layer,
    _lose_head,
    _stale_rank,
    _stale_layer,
    _wrong_latest,
    _escaping_latest,
    _two_tags,
    _wrong_config,
    _gpt_j_tied,
    _replica,
    _flip,
    _truncate,
)


@pytest.mark.parametrize("harm", HARM, ids=lambda h: h.__name__)
def test_damage_is_named_and_leaves_nothing(trained: Path, tmp_path: Path, harm: Harm) -> None:
    message = harm(trained)
    with pytest.raises(HpctrainError, match=message) as caught:
        convert(trained, "hf", tmp_path / "out", ConvertOptions(source_format="neox"))
    assert caught.value.exit_code in (2, 7)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["neox", "source"]


def test_an_unknown_order_of_grouped_heads_must_be_said(tmp_path: Path) -> None:
    source = make(tmp_path / "source", LLAMA)
    convert(source, "neox", tmp_path / "neox", ConvertOptions())
    (tmp_path / "neox/conversion.json").unlink()
    with pytest.raises(ConfigError, match="order of grouped query"):
        neox.read(tmp_path / "neox", ConvertOptions())


def test_a_tensor_that_neox_has_no_place_for_is_refused(tmp_path: Path) -> None:
    config = {**LLAMA, "model_type": "gpt_neox"}
    source = make(tmp_path / "source", LLAMA)
    (source / "config.json").write_text(json.dumps(config))
    with pytest.raises((ConfigError, IntegrityError), match=r"gpt_neox.embed_in.weight is missing from"):
        convert(source, "neox", tmp_path / "neox", ConvertOptions())


def test_heads_that_do_not_divide_are_refused(tmp_path: Path) -> None:
    source = make(tmp_path / "source", LLAMA)
    with pytest.raises(ConfigError, match="do not divide by tp 8"):
        convert(source, "neox", tmp_path / "neox", ConvertOptions(tp=8))
