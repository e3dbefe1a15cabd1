"""GPT-NeoX checkpoints, read and written: sharded, fused and replicated tensors back into whole ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpctrain.plugin import ConfigError, HpctrainError, IntegrityError
from hpctrain_plugins.checkpoints import record
from hpctrain_plugins.checkpoints.formats.fused import split_qkv
from hpctrain_plugins.checkpoints.formats.hf import read_json, restored
from hpctrain_plugins.checkpoints.formats.hf.beside import beside
from hpctrain_plugins.checkpoints.formats.neox import config as neox_config
from hpctrain_plugins.checkpoints.formats.neox import masters as neox_masters
from hpctrain_plugins.checkpoints.formats.neox import shards as neox_shards
from hpctrain_plugins.checkpoints.formats.neox import write as neox_write
from hpctrain_plugins.checkpoints.formats.neox.names import (
    COLUMN,
    DROPPED,
    GATED,
    GPT_NEOX,
    LLAMA_LIKE,
    QKV,
    ROW,
    ROW_BIAS,
    Architecture,
    Rule,
    canonical,
)
from hpctrain_plugins.checkpoints.formats.neox.shards import Shards
from hpctrain_plugins.checkpoints.formats.steps import leads_to, step_folder, step_number
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.output import Output
from hpctrain_plugins.checkpoints.tensors import Model, Plus, Tensor, concat

HPCTRAIN_API = 1
CHOICES = ("tp", "iteration", "naming", "layout")


def detect(path: Path) -> bool:
    """Layer files or sequential rank files lie in the folder or one step below."""
    return leads_to(path, neox_shards.holds)


def plan(model: Model, options: ConvertOptions) -> Output:
    """Shards for `options.tp` ranks with the configuration that loads them."""
    return neox_write.plan(model, options)


def read(path: Path, options: ConvertOptions) -> Model:
    """The model of one step."""
    step = step_folder(path, options.tag, "latest", neox_shards.holds)
    shards, config = _step(step, options)
    return _Reader(shards, config, options, step).model()


def opened(path: Path, options: ConvertOptions) -> tuple[Shards, dict[str, Any]]:
    """The shards as the trainer holds them, with its settings."""
    step = step_folder(path, options.tag, "latest", neox_shards.holds)
    shards, config = _step(step, options)
    if options.masters:
        neox_masters.put(step, shards, Model({}))
    return shards, config


def _step(step: Path, options: ConvertOptions) -> tuple[Shards, dict[str, Any]]:
    shards = neox_shards.read(step)
    files = _config_files(step, options)
    settings = neox_config.load(files)
    neox_config.check_settings(settings, shards.args, files, step)
    config = {**shards.args, **settings}
    neox_config.check_supported(config)
    return shards, config


def _config_files(step: Path, options: ConvertOptions) -> list[Path]:
    if options.config and options.config.is_file():
        return [options.config]
    folder = options.config or step / "configs"
    return sorted(p for p in folder.glob("*") if p.suffix in (".yml", ".yaml", ".json"))


class _Reader:
    def __init__(self, shards: Shards, config: dict[str, Any], options: ConvertOptions, step: Path) -> None:
        self._shards = shards
        self._config = config
        self._options = options
        self._step = step
        self._layers = neox_config.count_of(config, "num_layers")
        self._parallel = bool(config.get("gpt_j_residual", False))
        self._arch = LLAMA_LIKE if (2, "input_layernorm.scale") in shards.tensors else GPT_NEOX
        self._layout = ""
        self._model = Model({}, crcs=shards.crcs, step=step_number(step.name))
        self._record = record.decisions(step.parent)

    def model(self) -> Model:
        self._check_layers()
        if self._options.masters:
            neox_masters.put(self._step, self._shards, self._model)
        self._layout = self._gqa_layout()
        vocab = self._record.get("original_vocab_size")
        self._put(self._arch.embedding, self._trim(self._only(0, "word_embeddings.weight"), vocab))
        for index in range(self._layers):
            self._layer(index)
        for name, hf in self._arch.norm.items():
            self._put_replicated(hf, self._only(self._layers + 3, name))
        if self._layers + 4 in self._shards.layers:
            head = self._only(self._layers + 4, "final_linear.weight")
            self._put(self._arch.head, self._trim(head, vocab))
        self._leftovers()
        self._finish()
        return self._model

    def _check_layers(self) -> None:
        tied = not self._config.get("no_weight_tying", False)
        want = {0, *range(2, self._layers + 2), self._layers + 3}
        want |= set() if tied else {self._layers + 4}
        have = self._shards.layers
        for layer in sorted(want - have):
            message = f"layer {layer} is missing from {self._step}"
            raise IntegrityError.of("checkpoint-incomplete", message, where=str(self._step))
        for layer in sorted(have - want):
            message = f"{self._step} has a layer {layer} that its configuration does not know"
            raise IntegrityError.of("checkpoint-stale", message, where=str(self._step))
        tp = self._config.get("model_parallel_size")
        if tp is not None and int(tp) != self._shards.tp:
            message = f"{self._step} has {self._shards.tp} ranks where its configuration says {tp}"
            raise IntegrityError.of("checkpoint-stale", message, where=str(self._step))

    def _gqa_layout(self) -> str:
        """Where rows of key and value lie cannot be seen when heads are grouped."""
        if not neox_config.heads_of(self._config).grouped:
            return "per-head"
        noted = str(self._record.get("neox_gqa_layout", ""))
        layout = self._options.neox_gqa_layout or noted
        if noted not in ("", layout):
            message = (
                f"these files were written with {noted}, as their {record.RECORD} says, not with {layout}"
            )
            hint = f"--neox-gqa-layout {noted}      (for another order convert to hf, and that to neox)"
            raise ConfigError.of("checkpoint-choice", message, where="neox_gqa_layout", hint=hint)
        if not layout:
            raise ConfigError.of(
                "checkpoint-choice",
                "the order of grouped query, key and value rows changed in November 2024 and "
                "cannot be seen in the files",
                where="neox_gqa_layout",
                hint="--neox-gqa-layout concat",
                notes=("concat: trained after November 2024; per-head: before",),
            )
        self._model.decisions["neox_gqa_layout"] = layout
        return layout

    def _trim(self, ranks: list[Tensor], vocab: int | None) -> Tensor:
        full = concat(ranks)
        self._check_padded(full)
        if vocab is None or vocab >= full.shape[0]:
            return full
        self._model.decisions["vocab_rows_dropped"] = full.shape[0] - vocab
        return full.part(0, 0, vocab)

    def _check_padded(self, table: Tensor) -> None:
        """The trainer makes the vocabulary a multiple of a setting and its ranks, and loads no other."""
        multiple = self._config.get("make_vocab_size_divisible_by")
        unit = int(multiple or 1) * self._shards.tp
        if table.shape[0] % unit:
            message = (
                f"{table.name} has {table.shape[0]} rows, where make_vocab_size_divisible_by {multiple} "
            )
            message += f"and {self._shards.tp} ranks make multiples of {unit}"
            raise IntegrityError.of("checkpoint-shape", message, where=table.name)

    def _only(self, layer: int, name: str) -> list[Tensor]:
        ranks = self._shards.tensors.pop((layer, name), None)
        if ranks is None:
            message = f"{name} of layer {layer} is missing from {self._step}"
            raise IntegrityError.of("checkpoint-incomplete", message, where=f"{layer}.{name}")
        return ranks

    def _layer(self, index: int) -> None:
        done = set()
        for layer, name in [k for k in self._shards.tensors if k[0] == index + 2]:
            first = canonical(name, self._arch)
            rule = self._arch.layer.get(first)
            if rule is None:
                continue
            if first in done:
                message = f"layer {layer} holds {first} under two names"
                raise IntegrityError.of("checkpoint-stale", message, where=f"{layer}.{name}")
            done.add(first)
            if name == "attention.qkv.weight" and self._layout != "per-head":
                message = "TransformerEngine's own order of grouped heads is not known"
                raise ConfigError.of("checkpoint-unsupported", message, where=f"{layer}.{name}")
            ranks = self._shards.tensors.pop((layer, name))
            names = [self._arch.layer_name(index, hf) for hf in rule.hf]
            self._apply(rule, ranks, names)

    def _apply(self, rule: Rule, ranks: list[Tensor], names: list[str]) -> None:
        if rule.kind == COLUMN:
            self._put(names[0], concat(ranks))
        elif rule.kind == ROW:
            self._put(names[0], concat(ranks, 1))
        elif rule.kind == QKV:
            heads = neox_config.heads_of(self._config).over(len(ranks))
            split = [split_qkv(rank, heads, self._layout) for rank in ranks]
            for name, parts in zip(names, zip(*split, strict=True), strict=True):
                self._put(name, concat(parts))
        elif rule.kind == GATED:
            halves = [rank.chunk(0, 2) for rank in ranks]
            for name, parts in zip(names, zip(*halves, strict=True), strict=True):
                self._put(name, concat(parts))
        elif rule.kind == ROW_BIAS and self._parallel and len(ranks) > 1:
            self._check_alike(names[0], ranks)
            self._model.decisions["row_bias"] = "summed over ranks (gpt_j_residual)"
            added = Tensor(
                ranks[0].name,
                ranks[0].dtype,
                ranks[0].shape,
                ranks[0].bands,
                Plus(tuple(ranks[1:])),
            )
            self._put(names[0], added)
        else:
            self._put_replicated(names[0], ranks)

    def _put_replicated(self, name: str, ranks: list[Tensor]) -> None:
        first = ranks[0].named(name)
        self._check_alike(name, ranks)
        self._model.replicas += [(first, replica) for replica in ranks[1:]]
        self._put(name, first)

    def _check_alike(self, name: str, ranks: list[Tensor]) -> None:
        for rank in ranks[1:]:
            if rank.shape != ranks[0].shape:
                message = f"{name} has shape {list(ranks[0].shape)} on one rank of {self._step} and "
                message += f"{list(rank.shape)} on another"
                raise IntegrityError.of("checkpoint-shape", message, where=name)

    def _put(self, name: str, tensor: Tensor) -> None:
        if name in self._model.tensors:
            raise IntegrityError.of("checkpoint-stale", f"{name} is found twice in {self._step}", where=name)
        self._model.tensors[name] = tensor.named(name)

    def _leftovers(self) -> None:
        self._model.ignored.update(self._shards.ignored)
        for layer, name in self._shards.tensors:
            why = next((w for end, w in DROPPED if name.endswith(end)), None)
            if why is None:
                message = f"{name} of layer {layer} has no place in a {_family(self._arch)} model"
                raise ConfigError.of("checkpoint-unsupported", message, where=f"{layer}.{name}")
            self._model.ignored[f"{layer}.{name}"] = why

    def _finish(self) -> None:
        tensors, llama = self._model.tensors, self._arch is LLAMA_LIKE
        for index in range(self._layers):
            self._complete(index)
        if not llama and self._arch.layer_name(0, "mlp.dense_h_to_4h.bias") not in tensors:
            raise ConfigError.of(
                "checkpoint-unsupported", "GPT-NeoX without MLP biases has no equal in Hugging Face"
            )
        up = self._arch.layer_name(0, "mlp.up_proj.weight" if llama else "mlp.dense_h_to_4h.weight")
        biased = self._arch.layer_name(
            0, "self_attn.q_proj.bias" if llama else "attention.query_key_value.bias"
        )
        if not llama and (biased in tensors) != (self._arch.layer_name(0, "attention.dense.bias") in tensors):
            message = f"one of the two biases of attention is missing from {self._step}"
            raise IntegrityError.of("checkpoint-incomplete", message, where=biased)
        sizes = {
            "vocab": tensors[self._arch.embedding].shape[0],
            "intermediate": tensors[up].shape[0],
        }
        self._model.config = neox_config.to_hf(self._config, sizes, biased in tensors, llama)
        if llama:
            self._model.config["mlp_bias"] = self._arch.layer_name(0, "mlp.up_proj.bias") in tensors
        self._check_shapes(sizes)
        self._model.config = restored(self._model.config, self._record.get("config"))
        if "eos_token_id" not in self._model.config:
            message = (
                "GPT-NeoX notes no eos_token_id and bos_token_id: who reads config.json takes its defaults"
            )
            self._model.warnings.append(message)
        self._model.decisions |= {
            "source_tp": self._shards.tp,
            "source_layout": self._shards.layout,
        }
        self._tokenizer()

    def _complete(self, index: int) -> None:
        """Every weight of the layer is there; biases may be left out by all layers alike."""
        first = {n.partition(".0.")[2] for n in self._model.tensors if ".layers.0." in n}
        for suffix in sorted(first):
            name = self._arch.layer_name(index, suffix)
            if name not in self._model.tensors:
                raise IntegrityError.of(
                    "checkpoint-incomplete", f"{name} is missing from {self._step}", where=name
                )
        for rule in (r for r in self._arch.layer.values() if r.hf[0].endswith("weight")):
            for hf in rule.hf:
                name = self._arch.layer_name(index, hf)
                if name not in self._model.tensors:
                    raise IntegrityError.of(
                        "checkpoint-incomplete", f"{name} is missing from {self._step}", where=name
                    )

    def _check_shapes(self, sizes: dict[str, int]) -> None:
        hidden, inner = int(self._config["hidden_size"]), sizes["intermediate"]
        down = "mlp.down_proj.weight" if self._arch is LLAMA_LIKE else "mlp.dense_4h_to_h.weight"
        expected: dict[str, tuple[int, ...]] = {self._arch.embedding: (sizes["vocab"], hidden)}
        expected |= {self._arch.layer_name(i, down): (hidden, inner) for i in range(self._layers)}
        expected |= dict.fromkeys(self._arch.norm.values(), (hidden,))
        for name, shape in expected.items():
            self._model.tensors[name].shaped(*shape)
            if self._model.tensors[name].shape != shape:
                message = f"{name} has shape {list(self._model.tensors[name].shape)}, not {list(shape)}"
                raise IntegrityError.of("checkpoint-shape", message, where=name)

    def _tokenizer(self) -> None:
        """The tokenizer of the run, when the option, our own conversion or the configuration leads to it."""
        self._model.files.update(beside(self._options.tokenizer or self._step.parent / "tokenizer"))
        named = Path(str(self._config.get("vocab_file") or ""))
        if not self._model.files and named.suffix == ".json" and _is_tokenizer(named):
            self._model.files["tokenizer.json"] = named


def _is_tokenizer(file: Path) -> bool:
    """Settings may name any file of this computer; only what is a tokenizer goes along."""
    try:
        return file.is_file() and "vocab" in read_json(file)["model"]
    except (HpctrainError, LookupError, TypeError):
        return False


def _family(arch: Architecture) -> str:
    return "Llama" if arch is LLAMA_LIKE else "GPT-NeoX"
