"""GPT-NeoX checkpoints, written: whole tensors into the shards of every rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints import quantised
from hpctrain_plugins.checkpoints.containers import torchzip_write
from hpctrain_plugins.checkpoints.containers.torchzip_write import Saved
from hpctrain_plugins.checkpoints.copying.compute import target_dtype
from hpctrain_plugins.checkpoints.formats.fused import fuse_qkv
from hpctrain_plugins.checkpoints.formats.neox import config as neox_config
from hpctrain_plugins.checkpoints.formats.neox.names import (
    COLUMN,
    GATED,
    GPT_NEOX,
    LLAMA_LEGACY,
    LLAMA_LIKE,
    QKV,
    ROW,
    ROW_BIAS,
    Architecture,
    Rule,
    written,
)
from hpctrain_plugins.checkpoints.formats.unlike import refusal
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.output import OutFile, Output
from hpctrain_plugins.checkpoints.tensors import Model, Tensor, concat, zeros

_BUFFERS = ("attention.bias", "attention.masked_bias", "rotary_emb.inv_freq")

_KINDS = {"gpt_neox": GPT_NEOX, "llama": LLAMA_LIKE, "mistral": LLAMA_LIKE}


def plan(model: Model, options: ConvertOptions) -> Output:
    """Layer files or rank files, the rank files that a resume needs, configuration and `latest`."""
    kind = str(neox_config.need(model.config, "model_type"))
    if kind not in _KINDS:
        raise refusal("GPT-NeoX", kind, _KINDS)
    quantised.refuse(model, "GPT-NeoX")
    return _Writer(model, options, _KINDS[kind]).output()


class _Writer:
    def __init__(self, model: Model, options: ConvertOptions, arch: Architecture) -> None:
        self._left = dict(model.tensors)
        self._model = model
        self._options = options
        self._arch = arch
        self._tp = options.tp
        self._shards: dict[tuple[int, str], list[Tensor]] = {}
        self._decisions: dict[str, object] = {}
        self._layers = neox_config.count_of(model.config, "num_hidden_layers")
        self._decisions["config"] = model.config
        self._check_naming()
        neox_config.check_heads(model.config)

    def _check_naming(self) -> None:
        if self._options.naming == "te" and self._arch is LLAMA_LIKE:
            message = "TransformerEngine's names are known for the GPT-NeoX family only"
            raise ConfigError.of("checkpoint-unsupported", message, where="naming", hint="--naming new")

    def output(self) -> Output:
        self._vocabulary(0, "word_embeddings.weight", self._arch.embedding)
        for index in range(self._layers):
            for name, rule in self._rules():
                self._rule(index, name, rule)
        last = self._layers + 3
        for name, hf in self._arch.norm.items():
            self._shards[last, name] = [self._take(hf).named(f"{last}.{name}")] * self._tp
        if not self._model.config.get("tie_word_embeddings", False):
            self._vocabulary(self._layers + 4, "final_linear.weight", self._arch.head)
        self._leftovers()
        return self._files()

    def _rules(self) -> list[tuple[str, Rule]]:
        """The tensors of a layer; of Llama's two kinds of MLP the one that was asked for."""
        legacy = self._options.naming == "legacy"
        rules = self._arch.layer.items()
        if self._arch is GPT_NEOX:
            return list(rules)
        drop = ("mlp.linear1", "mlp.linear2") if legacy else tuple(LLAMA_LEGACY)
        return [(n, r) for n, r in rules if not n.startswith(drop)]

    def _take(self, name: str) -> Tensor:
        tensor = self._left.pop(name, None)
        if tensor is None:
            raise IntegrityError.of("checkpoint-incomplete", f"the model has no {name}", where=name)
        return tensor

    def _rule(self, index: int, name: str, rule: Rule) -> None:
        names = [self._arch.layer_name(index, hf) for hf in rule.hf]
        if name.endswith("bias") and not any(n in self._left for n in names):
            return
        parts = [self._take(n) for n in names]
        key = (index + 2, written(name, self._options.naming))
        self._shards[key] = [t.named(f"{key[0]}.{key[1]}") for t in self._split(rule, parts)]

    def _split(self, rule: Rule, parts: Sequence[Tensor]) -> list[Tensor]:
        first, tp = parts[0], self._tp
        if rule.kind == COLUMN:
            return first.chunk(0, tp)
        if rule.kind == ROW:
            return first.chunk(1, tp)
        if rule.kind == QKV:
            return self._qkv(parts)
        if rule.kind == GATED:
            ranks = zip(*(p.chunk(0, tp) for p in parts), strict=True)
            return [concat(rank) for rank in ranks]
        if rule.kind == ROW_BIAS and self._parallel and tp > 1:
            self._decisions["row_bias"] = "whole on rank 0, zeros elsewhere (gpt_j_residual)"
            return [first, *[zeros(first.name, first.dtype, first.shape)] * (tp - 1)]
        return [first] * tp

    @property
    def _parallel(self) -> bool:
        config = self._model.config
        return self._arch is GPT_NEOX and bool(config.get("use_parallel_residual", True))

    def _qkv(self, parts: Sequence[Tensor]) -> list[Tensor]:
        heads = neox_config.heads_of(
            {**self._model.config, "num_kv_heads": self._model.config.get("num_key_value_heads")}
        )
        layout = "per-head"
        if heads.grouped:
            layout = self._options.neox_gqa_layout or "concat"
            self._decisions["neox_gqa_layout"] = layout
        rank_heads = heads.over(self._tp)
        ranks = zip(*(p.chunk(0, self._tp) for p in parts), strict=True)
        return [fuse_qkv(rank, rank_heads, layout) for rank in ranks]

    def _vocabulary(self, layer: int, name: str, hf: str) -> None:
        """Rows of the vocabulary, padded as the trainer pads them for this many ranks."""
        whole = self._take(hf)
        rows = whole.shape[0]
        unit = 128 * self._tp
        padded = rows if rows % self._tp == 0 else -(-rows // unit) * unit
        if padded != rows:
            self._decisions["original_vocab_size"] = rows
            whole = concat([whole, zeros(hf, whole.dtype, (padded - rows, *whole.shape[1:]))])
        self._shards[layer, name] = [t.named(f"{layer}.{name}") for t in whole.chunk(0, self._tp)]

    def _leftovers(self) -> None:
        for name in sorted(self._left):
            tied = name == self._arch.head
            if not tied and not name.endswith(_BUFFERS):
                raise ConfigError.of(
                    "checkpoint-unsupported", f"GPT-NeoX has no place for {name}", where=name
                )
            if tied:
                embedding = self._model.tensors[self._arch.embedding]
                self._model.replicas.append((embedding, self._model.tensors[name]))
            why = "tied to the embedding" if tied else "computed from the configuration"
            self._model.ignored[name] = why

    def _files(self) -> Output:
        import yaml

        options = self._options
        step = self._model.step if options.iteration is None else options.iteration
        step = step or 0
        folder = f"global_step{step}"
        output = Output(decisions=self._decisions)
        for rank in range(self._tp):
            state = {**_state(self._tp, step), "args": self._args(), "module": None}
            if options.layout == "pipelined":
                output.files += self._pipelined(folder, rank)
            else:
                state["module"] = self._flat(rank)
            name = f"{folder}/mp_rank_{rank:02d}_model_states.pt"
            output.files.append(torchzip_write.plan_file(name, state))
        output.texts["latest"] = folder.encode()
        output.texts[f"{folder}/configs/model.yml"] = yaml.safe_dump(self._config(), sort_keys=False).encode()
        output.copies.update({f"tokenizer/{n}": p for n, p in self._model.files.items()})
        return output

    def _pipelined(self, folder: str, rank: int) -> Iterator[OutFile]:
        for layer in sorted({layer for layer, _ in self._shards}):
            names = {n: t[rank] for (tensor_layer, n), t in self._shards.items() if tensor_layer == layer}
            name = f"{folder}/layer_{layer:02d}-model_{rank:02d}-model_states.pt"
            yield torchzip_write.plan_file(name, self._saved(names))

    def _flat(self, rank: int) -> dict[str, Saved]:
        return self._saved({f"sequential.{layer}.{n}": t[rank] for (layer, n), t in self._shards.items()})

    def _saved(self, tensors: Mapping[str, Tensor]) -> dict[str, Saved]:
        dtype = self._options.target_dtype
        return {n: Saved(t, target_dtype(t, dtype)) for n, t in tensors.items()}

    def _config(self) -> dict[str, Any]:
        vocab = self._tp * self._shards[0, "word_embeddings.weight"][0].shape[0]
        config = neox_config.from_hf(self._model.config, vocab, self._tp, self._options.naming)
        return {**config, "pipe_parallel_size": 1 if self._options.layout == "pipelined" else 0}

    def _args(self) -> dict[str, Any]:
        keys = (
            "num_layers",
            "hidden_size",
            "num_attention_heads",
            "max_position_embeddings",
            "make_vocab_size_divisible_by",
            "model_parallel_size",
        )
        config = self._config()
        vocab = self._tp * self._shards[0, "word_embeddings.weight"][0].shape[0]
        return {**{k: config[k] for k in keys}, "padded_vocab_size": vocab}


def _state(tp: int, step: int) -> dict[str, Any]:
    """What the trainer looks for when it loads weights without an optimizer."""
    return {
        "dp_world_size": 1,
        "mp_world_size": tp,
        "optimizer": {},
        "global_steps": step,
        "skipped_steps": 0,
        "iteration": step,
    }
