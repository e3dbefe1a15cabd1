"""nanotron checkpoints, read and written: one file per tensor and rank, each with its place in the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints import record
from hpctrain_plugins.checkpoints.containers import safetensors
from hpctrain_plugins.checkpoints.formats.fused import Heads, pairs_to_halves, split_qkv
from hpctrain_plugins.checkpoints.formats.hf import read_json, restored
from hpctrain_plugins.checkpoints.formats.hf.beside import beside
from hpctrain_plugins.checkpoints.formats.nanotron import write as nanotron_write
from hpctrain_plugins.checkpoints.formats.nanotron.names import (
    EMBEDDING,
    HEAD,
    LAYER,
    OUTER,
    Piece,
    ShardName,
    parse_file,
    parse_pieces,
    parse_shape,
)
from hpctrain_plugins.checkpoints.formats.steps import leads_to, step_folder, step_number
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.output import Output
from hpctrain_plugins.checkpoints.tensors import Model, Tensor, concat

HPCTRAIN_API = 1
CHOICES = ("tp", "pp", "iteration")

_COPIED_KEYS = (
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "hidden_act",
    "hidden_size",
    "initializer_range",
    "intermediate_size",
    "max_position_embeddings",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "rms_norm_eps",
    "rope_theta",
    "tie_word_embeddings",
    "attention_bias",
)


def _holds(path: Path) -> bool:
    return (path / "checkpoint_metadata.json").is_file() and (path / "model").is_dir()


def detect(path: Path) -> bool:
    """Metadata and a folder of model files lie in the folder or one step below."""
    return leads_to(path, _holds)


def plan(model: Model, options: ConvertOptions) -> Output:
    """One file per tensor and rank, for `options.tp` and `options.pp`."""
    return nanotron_write.plan(model, options)


def read(path: Path, options: ConvertOptions) -> Model:
    """The model of one step."""
    step = step_folder(path, options.tag, "latest.txt", _holds)
    tensors, config = opened(path, options)
    decisions = record.decisions(step.parent)
    model = _model(tensors, config, _interleaved(config, options), decisions.get("original_vocab_size"))
    model.step = step_number(step.name)
    model.config = restored(model.config, decisions.get("config"))
    model.files = beside(options.tokenizer or step.parent / "tokenizer")
    return model


def opened(path: Path, options: ConvertOptions) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors under the trainer's own names, put together, with its settings."""
    step = step_folder(path, options.tag, "latest.txt", _holds)
    config = read_json(options.config or step / "model_config.json")
    if not config.get("is_llama_config"):
        raise ConfigError.of(
            "checkpoint-unsupported", "only nanotron's Llama models can be read", where=str(step)
        )
    if config.get("rope_scaling"):
        raise ConfigError.of(
            "checkpoint-choice",
            "it says rope_scaling, which nanotron never reads: it computes with plain rotary embeddings",
            where="rope_scaling",
            hint="--config FILE      (a copy of model_config.json without rope_scaling: as it was trained)",
        )
    return {name: _unsharded(name, files) for name, files in _files(step).items()}, config


def _interleaved(config: dict[str, Any], options: ConvertOptions) -> bool:
    if options.rope_interleaved is not None:
        return options.rope_interleaved
    if "rope_interleaved" not in config:
        raise ConfigError.of(
            "checkpoint-choice",
            "the model does not say whether its rotary pairs are interleaved; the default changed",
            where="rope_interleaved",
            hint="--rope-interleaved",
            notes=("trained before August 2024: interleaved; after: not",),
        )
    return bool(config["rope_interleaved"])


def _files(step: Path) -> dict[str, dict[int | None, tuple[ShardName, Path]]]:
    """Every tensor's files by rank."""
    root = step / "model"
    out: dict[str, dict[int | None, tuple[ShardName, Path]]] = {}
    for path in sorted(root.rglob("*.safetensors")):
        shard = parse_file(path.name)
        if shard is None:
            raise IntegrityError.of(
                "checkpoint-damaged", f"{path} has a name of no known kind", where=str(path)
            )
        if shard.expert:
            raise ConfigError.of("checkpoint-unsupported", f"{path} holds experts, which is not supported")
        name = ".".join([*path.parent.relative_to(root).parts, shard.leaf])
        ranks = out.setdefault(name, {})
        if shard.rank in ranks or (ranks and (shard.rank is None or None in ranks)):
            raise IntegrityError.of(
                "checkpoint-stale", f"{name} has two files for one rank, one is {path}", where=name
            )
        ranks[shard.rank] = (shard, path)
    return out


def _unsharded(name: str, files: dict[int | None, tuple[ShardName, Path]]) -> Tensor:
    pieces: list[tuple[Piece, Tensor]] = []
    shape: tuple[int, ...] | None = None
    for rank, (shard, path) in sorted(files.items(), key=lambda f: f[0] or 0):
        header = safetensors.read_header(path)
        data = header.tensors.get("data")
        if data is None or len(header.tensors) != 1:
            raise IntegrityError.of(
                "checkpoint-damaged", f"{path} does not hold one tensor called data", where=str(path)
            )
        # Its file calls every tensor `data`; people and our own record call it by its path.
        data = attrs.evolve(data, name=name, origins=tuple(attrs.evolve(o, name=name) for o in data.origins))
        if rank is None:
            return data
        if len(files) != shard.ranks:
            lost = min(set(range(shard.ranks)) - {r for r in files if r is not None}, default=shard.ranks)
            raise IntegrityError.of(
                "checkpoint-incomplete", f"{name} has no file of rank {lost} of {shard.ranks}", where=name
            )
        whole = parse_shape(header.metadata.get("unsharded_shape", ""), name)
        if shape not in (None, whole):
            raise IntegrityError.of("checkpoint-shape", f"ranks of {name} differ in its shape", where=name)
        shape = whole
        slices = header.metadata.get("local_global_slices_pairs", "")
        pieces += [(p, data) for p in parse_pieces(slices, name, data.shape, whole)]
    return _assembled(name, pieces, shape or ())


def _assembled(name: str, pieces: list[tuple[Piece, Tensor]], shape: tuple[int, ...]) -> Tensor:
    axes = {p.axis for p, _ in pieces if p.whole != (0, shape[p.axis])} or {0}
    if len(axes) != 1:
        raise IntegrityError.of("checkpoint-shape", f"{name} is cut along several axes", where=name)
    axis, at, parts = axes.pop(), 0, []
    for piece, data in sorted(pieces, key=lambda p: p[0].whole):
        if piece.whole[0] != at:
            raise IntegrityError.of("checkpoint-shape", f"{name} has a gap or overlap at {at}", where=name)
        at = piece.whole[1]
        parts.append(data.part(axis, *piece.local))
    if at != shape[axis]:
        raise IntegrityError.of("checkpoint-shape", f"{name} ends at {at} of {shape[axis]}", where=name)
    full = concat(parts, axis).named(name)
    if full.shape != shape:
        raise IntegrityError.of(
            "checkpoint-shape", f"{name} has shape {list(full.shape)}, not {list(shape)}", where=name
        )
    return full


def _model(tensors: dict[str, Tensor], config: dict[str, Any], turned: bool, vocab: int | None) -> Model:
    model = Model({}, decisions={"rope_interleaved": turned})
    heads = _heads(config)
    tied = bool(config.get("tie_word_embeddings", False))

    def take(name: str) -> Tensor:
        if name not in tensors:
            raise IntegrityError.of("checkpoint-incomplete", f"{name} has no file", where=name)
        return tensors.pop(name)

    for name, hf in OUTER.items():
        if name == HEAD and tied:
            continue
        tensor = take(name)
        if name in (EMBEDDING, HEAD) and vocab is not None and vocab < tensor.shape[0]:
            tensor = tensor.part(0, 0, vocab)
        model.tensors[hf] = tensor.named(hf)
    for index in range(int(config["num_hidden_layers"])):
        _layer(model, index, heads, turned, bool(config.get("attention_bias")), take)
    for name in sorted(tensors):
        raise ConfigError.of("checkpoint-unsupported", f"{name} has no place in a Llama model", where=name)
    rows = model.tensors["model.embed_tokens.weight"].shape[0]
    model.config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **{k: config[k] for k in _COPIED_KEYS if k in config},
        "num_key_value_heads": heads.key_value,
        "vocab_size": rows,
    }
    return model


def _heads(config: dict[str, Any]) -> Heads:
    query = int(config["num_attention_heads"])
    return Heads(query, int(config.get("num_key_value_heads") or query), int(config["hidden_size"]) // query)


def _layer(model: Model, index: int, heads: Heads, turned: bool, biased: bool, take: Any) -> None:
    old, new = f"model.decoder.{index}.pp_block", f"model.layers.{index}"
    out = {hf: take(f"{old}.{name}") for name, hf in LAYER.items()}
    for kind in ("weight", "bias") if biased else ("weight",):
        query, key, value = split_qkv(take(f"{old}.attn.qkv_proj.{kind}"), heads, "concat")
        if turned:
            query, key = pairs_to_halves(query, heads.query), pairs_to_halves(key, heads.key_value)
        for letter, tensor in (("q", query), ("k", key), ("v", value)):
            out[f"self_attn.{letter}_proj.{kind}"] = tensor
    gate, up = take(f"{old}.mlp.gate_up_proj.weight").chunk(0, 2)
    out |= {"mlp.gate_proj.weight": gate, "mlp.up_proj.weight": up}
    model.tensors.update({f"{new}.{k}": t.named(f"{new}.{k}") for k, t in out.items()})
