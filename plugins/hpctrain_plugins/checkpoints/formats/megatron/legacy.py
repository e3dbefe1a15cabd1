"""Megatron-LM's older checkpoints (`--ckpt-format torch`), read: a file for each rank's share."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints.containers import torchzip
from hpctrain_plugins.checkpoints.formats.hf import config_of
from hpctrain_plugins.checkpoints.formats.hf.beside import beside
from hpctrain_plugins.checkpoints.formats.megatron import settings
from hpctrain_plugins.checkpoints.formats.megatron.common import INERT, arguments
from hpctrain_plugins.checkpoints.formats.megatron.decoder import Layers, decoder
from hpctrain_plugins.checkpoints.formats.megatron.layers import Cell
from hpctrain_plugins.checkpoints.formats.megatron.names import (
    EMBEDDING,
    EXPERTS,
    GATED,
    HEAD,
    LAYERS,
    Rule,
)
from hpctrain_plugins.checkpoints.formats.megatron.steps import step_of
from hpctrain_plugins.checkpoints.formats.neox.config import need
from hpctrain_plugins.checkpoints.formats.steps import leads_to, step_number
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.tensors import Model, Tensor, concat

HPCTRAIN_API = 1

_FILE = "model_optim_rng.pt"
_RANK = re.compile(r"mp_rank_(\d+)(?:_(\d+))?(?:_(\d+))?$")
_LAYER = re.compile(r"decoder\.layers\.(\d+)\.(.+)$")
_EXPERT = (
    re.compile(r"mlp\.experts\.local_experts\.(?P<number>\d+)\.(?P<rest>linear_fc[12]\.\w+)$"),
    re.compile(r"mlp\.experts\.(?P<rest>linear_fc[12]\.weight)(?P<number>\d+)$"),
)
"""An expert of a rank, of Megatron's own layers and of TransformerEngine's."""
_NORMS = {
    "input_layernorm.weight": "self_attention.linear_qkv.layer_norm_weight",
    "pre_mlp_layernorm.weight": "mlp.linear_fc1.layer_norm_weight",
}
"""Norms of Megatron's own layers, and where those of TransformerEngine are."""

Place = tuple[int, int, int]
"""The tensor-parallel, pipeline and expert rank of a file."""
_Shares = dict[tuple[str, "Cell | None"], dict[int, list[Tensor]]]
"""Name, and cell of a layer's -> by tensor-parallel rank: one tensor for each expert rank that has it."""


def _holds(path: Path) -> bool:
    return any(path.glob(f"mp_rank_*/{_FILE}"))


def detect(path: Path) -> bool:
    """Folders of ranks lie in the folder or one step below."""
    return leads_to(path, _holds)


def read(path: Path, options: ConvertOptions) -> Model:
    """The weights of all ranks together."""
    step = step_of(path, options.tag, _holds)
    if options.masters:
        message = "the optimizer of Megatron's older checkpoints does not name the weights"
        raise ConfigError.of("checkpoint-unsupported", message, where="masters", hint="leave --masters out")
    model = Model({}, step=step_number(step.name))
    ranks, args = _ranks(step, model)
    model.config = config_of(step, options) if options.config else settings.to_hf(args, step)
    rules = LAYERS.get(str(need(model.config, "model_type")), {})
    outer: dict[str, Tensor] = {}
    layers: Layers = defaultdict(dict)
    for (name, cell), shares in _gathered(ranks, int(args.get("num_experts") or 0)).items():
        key = _NORMS[name] if name in _NORMS and _NORMS[name] in rules else name
        rule = Rule((), axis=0) if name in (EMBEDDING, HEAD) else rules.get(key, Rule(()))
        whole = _whole(f"{key} of {step}", shares, rule, model)
        if cell is None:
            outer[key] = whole
        else:
            layers[key][cell] = whole
    decoder(model, outer, layers, None)
    model.files = beside(options.tokenizer or step.parent / "tokenizer")
    model.ignored["everything else"] = "the optimizer, and how far the training was"
    return model


def _ranks(step: Path, model: Model) -> tuple[dict[Place, dict[str, Tensor]], dict[str, Any]]:
    """The tensors of every rank, and the arguments that all were started with."""
    out: dict[Place, dict[str, Tensor]] = {}
    args: dict[str, Any] = {}
    for file in sorted(step.glob(f"mp_rank_*/{_FILE}")):
        archive = torchzip.open_archive(file, inert=INERT)
        state = archive.value.get("model") if isinstance(archive.value, dict) else None
        if not isinstance(state, dict) or "language_model" in state:
            message = f"{file} holds no model of Megatron-Core: virtual stages, or older than it"
            raise ConfigError.of("checkpoint-unsupported", message, where=str(file))
        args = args or arguments(archive.value)
        model.crcs[file] = archive.crcs
        out[_place(file.parent.name, args)] = archive.tensors(state)
    if not args:
        raise IntegrityError.of(
            "checkpoint-damaged", f"{step} holds no arguments of Megatron-LM", where=str(step)
        )
    sizes = [int(args.get(f"{kind}_model_parallel_size") or 1) for kind in ("tensor", "pipeline", "expert")]
    for place in ((t, p, e) for t in range(sizes[0]) for p in range(sizes[1]) for e in range(sizes[2])):
        if place not in out:
            message = (
                f"{step} has no file of tensor rank {place[0]}, stage {place[1]}, expert rank {place[2]}"
            )
            raise IntegrityError.of("checkpoint-incomplete", message, where=str(step))
    return out, args


def _place(name: str, args: Mapping[str, Any]) -> Place:
    """The rank of a folder: the second number is a stage, or of one stage's model an expert rank."""
    match = _RANK.match(name)
    if match is None:
        raise IntegrityError.of("checkpoint-damaged", f"{name} is no rank's folder", where=name)
    first, second, third = (int(number or 0) for number in match.groups())
    staged = int(args.get("pipeline_model_parallel_size") or 1) > 1
    return (first, second, third) if staged or match[3] else (first, 0, second)


def _gathered(ranks: Mapping[Place, Mapping[str, Tensor]], experts: int) -> _Shares:
    """Every tensor with the numbers that it has in the whole model."""
    before = _layers_before(ranks)
    per_rank = experts // (1 + max(expert for _, _, expert in ranks))
    out: _Shares = defaultdict(lambda: defaultdict(list))
    for (tensor_rank, stage, expert_rank), tensors in sorted(ranks.items()):
        for name, tensor in tensors.items():
            layer = _LAYER.match(name)
            if name.endswith("_extra_state"):
                continue
            if layer is None:
                out[name, None][tensor_rank].append(tensor)
                continue
            index, suffix, expert = before[stage] + int(layer[1]), layer[2], None
            numbered = next((m for m in (pattern.match(suffix) for pattern in _EXPERT) if m), None)
            if numbered:
                suffix = EXPERTS + numbered["rest"]
                expert = expert_rank * per_rank + int(numbered["number"])
            out[suffix, (index, expert)][tensor_rank].append(tensor)
    return out


def _layers_before(ranks: Mapping[Place, Mapping[str, Tensor]]) -> list[int]:
    """How many layers lie in front of each stage."""
    out = [0]
    for stage in range(1 + max(stage for _, stage, _ in ranks)):
        numbers = {int(m[1]) for m in map(_LAYER.match, ranks[0, stage, 0]) if m}
        out.append(out[-1] + len(numbers))
    return out


def _whole(name: str, shares: Mapping[int, Sequence[Tensor]], rule: Rule, model: Model) -> Tensor:
    """The shares of all ranks put together; what several ranks hold must be the same."""
    for tensors in shares.values():
        model.replicas += [(tensors[0], replica) for replica in tensors[1:]]
    parts = [shares[rank][0] for rank in sorted(shares)]
    if rule.axis is None:
        model.replicas += [(parts[0], replica) for replica in parts[1:]]
        return parts[0]
    if rule.kind == GATED:
        halves = [part.chunk(0, 2) for part in parts]
        return concat([concat(list(half)) for half in zip(*halves, strict=True)]).named(name)
    return concat(parts, rule.axis)
