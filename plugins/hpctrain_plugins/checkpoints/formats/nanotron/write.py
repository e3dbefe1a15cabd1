"""nanotron checkpoints, written: for any number of tensor- and pipeline-parallel ranks."""

from __future__ import annotations

import json
from typing import Any

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints import quantised
from hpctrain_plugins.checkpoints.containers import safetensors
from hpctrain_plugins.checkpoints.copying.compute import target_dtype
from hpctrain_plugins.checkpoints.formats.fused import Heads, fuse_qkv, halves_to_pairs
from hpctrain_plugins.checkpoints.formats.leftovers import leave_out
from hpctrain_plugins.checkpoints.formats.nanotron.names import (
    EMBEDDING,
    HEAD,
    LAYER,
    NORM,
    OUTER,
    Piece,
    file_name,
    plain_file_name,
    slices_text,
)
from hpctrain_plugins.checkpoints.formats.neox.config import count_of, need, rope
from hpctrain_plugins.checkpoints.formats.unlike import refusal
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.output import Output
from hpctrain_plugins.checkpoints.tensors import Model, Tensor, concat, zeros

VERSION = "1.5"
"""The version of nanotron's checkpoints that is written."""


def plan(model: Model, options: ConvertOptions) -> Output:
    """The files of all ranks with the metadata that nanotron asks for."""
    kind = need(model.config, "model_type")
    if kind != "llama":
        raise refusal("nanotron", str(kind), ["llama"])
    quantised.refuse(model, "nanotron")
    return _Writer(model, options).output()


class _Writer:
    def __init__(self, model: Model, options: ConvertOptions) -> None:
        self._left = dict(model.tensors)
        self._model = model
        self._options = options
        self._config = model.config
        self._layers = count_of(model.config, "num_hidden_layers")
        query = count_of(model.config, "num_attention_heads")
        size = count_of(model.config, "hidden_size") // query
        self._heads = Heads(query, int(model.config.get("num_key_value_heads") or query), size)
        if self._config.get("head_dim") not in (None, size) or self._config.get("mlp_bias"):
            raise ConfigError.of(
                "checkpoint-unsupported", "nanotron's Llama has no head_dim and no MLP biases"
            )
        if rope(model.config, "rope_type", "rope_type", "default") != "default" or model.config.get(
            "rope_scaling"
        ):
            raise ConfigError.of(
                "checkpoint-unsupported", "nanotron cannot scale rotary embeddings", where="rope_scaling"
            )
        self._heads.over(options.tp)
        self._turned = bool(options.rope_interleaved)
        step = model.step if options.iteration is None else options.iteration
        self._step = step or 0
        self._output = Output(decisions={"rope_interleaved": self._turned, "config": model.config})
        self._tied = bool(model.config.get("tie_word_embeddings", False))
        self._stages: list[int] = []

    def output(self) -> Output:
        embedding = self._vocabulary(EMBEDDING)
        self._stages = self._pipeline(embedding.shape[0])
        self._sharded(EMBEDDING, embedding, 0, [embedding.shape[0]], self._stages[0])
        for index in range(self._layers):
            self._layer(index)
        self._plain(NORM, self._take(OUTER[NORM]))
        if not self._tied:
            head = self._vocabulary(HEAD)
            self._sharded(HEAD, head, 0, [head.shape[0]], self._stages[-1])
        leave_out(self._model, self._left, "nanotron", is_tied=self._tied)
        self._texts(embedding.shape[0])
        return self._output

    def _take(self, name: str) -> Tensor:
        if name not in self._left:
            raise IntegrityError.of("checkpoint-incomplete", f"the model has no {name}", where=name)
        return self._left.pop(name)

    def _vocabulary(self, name: str) -> Tensor:
        whole = self._take(OUTER[name])
        padding = -whole.shape[0] % self._options.tp
        if padding:
            self._output.decisions["original_vocab_size"] = whole.shape[0]
            whole = concat([whole, zeros(name, whole.dtype, (padding, *whole.shape[1:]))])
        return whole

    def _layer(self, index: int) -> None:
        old, new = f"model.layers.{index}", f"model.decoder.{index}.pp_block"
        stage = self._stages[index + 1]
        for name, hf in LAYER.items():
            tensor = self._take(f"{old}.{hf}")
            if "layernorm" in name:
                self._plain(f"{new}.{name}", tensor)
            else:
                self._sharded(f"{new}.{name}", tensor, 1, [tensor.shape[1]], stage)
        kinds = ("weight", "bias") if self._config.get("attention_bias") else ("weight",)
        for kind in kinds:
            query, key, value = (self._take(f"{old}.self_attn.{n}_proj.{kind}") for n in "qkv")
            if self._turned:
                query = halves_to_pairs(query, self._heads.query)
                key = halves_to_pairs(key, self._heads.key_value)
            fused = fuse_qkv([query, key, value], self._heads, "concat")
            sizes = [t.shape[0] for t in (query, key, value)]
            self._sharded(f"{new}.attn.qkv_proj.{kind}", fused, 0, sizes, stage)
        gate, up = (self._take(f"{old}.mlp.{n}_proj.weight") for n in ("gate", "up"))
        sizes = [gate.shape[0], up.shape[0]]
        self._sharded(f"{new}.mlp.gate_up_proj.weight", concat([gate, up]), 0, sizes, stage)

    def _plain(self, name: str, tensor: Tensor) -> None:
        self._file(plain_file_name(name), tensor.named(name), {})

    def _sharded(self, name: str, tensor: Tensor, axis: int, sizes: list[int], stage: int) -> None:
        """One file per rank; each chunk of `sizes` along `axis` is split over the ranks apart."""
        tp = self._options.tp
        for size in sizes:
            if size % tp:
                raise ConfigError.of(
                    "checkpoint-ranks",
                    f"{name} has {size} along axis {axis}, not divisible by tp {tp}",
                    where="tp",
                )
        for rank in range(tp):
            pieces, at, local = [], 0, 0
            for size in sizes:
                share = size // tp
                start = at + rank * share
                pieces.append(Piece(axis, (local, local + share), (start, start + share)))
                at, local = at + size, local + share
            part = concat([tensor.part(axis, *p.whole) for p in pieces], axis).named(name)
            metadata = {
                "version": VERSION,
                "local_global_slices_pairs": _slices(tensor, pieces),
                "unsharded_shape": str(tensor.shape),
            }
            self._file(file_name(name, stage, self._options.pp, rank, tp), part, metadata)

    def _file(self, path: str, tensor: Tensor, metadata: dict[str, str]) -> None:
        dtype = target_dtype(tensor, self._options.target_dtype)
        name = f"{self._step}/{path}"
        self._output.files.append(safetensors.plan_file(name, [("data", tensor, dtype)], metadata))

    def _pipeline(self, vocab: int) -> list[int]:
        """The stage of each block, balanced by cost as nanotron balances it."""
        hidden = int(self._config["hidden_size"])
        inner = count_of(self._config, "intermediate_size")
        layer = 4 * self._heads.query * self._heads.size * hidden + 3 * inner * hidden
        costs = [0, *[layer] * self._layers, 0, vocab * hidden]
        pp, total, stage, done = self._options.pp, sum(costs), 0, 0
        out = []
        for cost in costs:
            out.append(stage)
            done += cost
            if done > total * ((stage + 1) / pp):
                stage += 1
        if len(set(out)) < pp:
            message = f"{self._layers} layers leave some of {pp} pipeline stages empty"
            raise ConfigError.of("checkpoint-ranks", message, where="pp")
        return out

    def _texts(self, vocab: int) -> None:
        stage = {
            "name": "converted",
            "start_training_step": 1,
            "consumed_train_samples": 0,
            "sequence_length": need(self._config, "max_position_embeddings"),
            "consumed_tokens_per_dataset_folder": {},
        }
        metas = {
            "consumed_train_samples": 0,
            "last_train_step": self._step,
            "consumed_tokens_total": 0,
            "last_stage_idx": 0,
            "data_stages": [stage],
        }
        metadata = {"version": VERSION, "tp": self._options.tp, "dp": 1, "metas": metas, "cp": 1}
        self._output.texts["latest.txt"] = str(self._step).encode()
        self._output.texts[f"{self._step}/checkpoint_metadata.json"] = _json(metadata)
        self._output.texts[f"{self._step}/model_config.json"] = _json(self._model_config(vocab))
        self._output.copies = {f"tokenizer/{n}": p for n, p in self._model.files.items()}

    def _model_config(self, vocab: int) -> dict[str, Any]:
        config = self._config
        return {
            "bos_token_id": config.get("bos_token_id", 1),
            "eos_token_id": config.get("eos_token_id", 2),
            "hidden_act": config.get("hidden_act", "silu"),
            "hidden_size": config["hidden_size"],
            "initializer_range": config.get("initializer_range", 0.02),
            "intermediate_size": config["intermediate_size"],
            "is_llama_config": True,
            "max_position_embeddings": config["max_position_embeddings"],
            "num_attention_heads": self._heads.query,
            "num_hidden_layers": self._layers,
            "attention_bias": bool(config.get("attention_bias", False)),
            "num_key_value_heads": self._heads.key_value,
            "pad_token_id": config.get("pad_token_id"),
            "rms_norm_eps": config.get("rms_norm_eps", 1e-6),
            "rope_scaling": None,
            "rope_theta": rope(config, "rope_theta", "rope_theta", 10000.0),
            "rope_interleaved": self._turned,
            "tie_word_embeddings": self._tied,
            "vocab_size": vocab,
        }


def _slices(tensor: Tensor, pieces: list[Piece]) -> str:
    """One chunk takes the whole shard, which nanotron writes without numbers."""
    text = slices_text(len(tensor.shape), pieces)
    if len(pieces) > 1:
        return text
    everything = "|".join(["None,None,None"] * len(tensor.shape))
    return everything + "#" + text.partition("#")[2]


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()
