"""DeepSpeed ZeRO checkpoints of any stage: the full-precision weights out of the optimizer."""

from __future__ import annotations

from pathlib import Path

from hpctrain.plugin import ConfigError
from hpctrain_plugins.checkpoints.formats import zero_files, zero_ranks
from hpctrain_plugins.checkpoints.formats.hf import config_of, read_json
from hpctrain_plugins.checkpoints.formats.hf.beside import beside
from hpctrain_plugins.checkpoints.formats.neox import shards as neox_shards
from hpctrain_plugins.checkpoints.formats.peft.base import find_base
from hpctrain_plugins.checkpoints.formats.peft.lora import ADAPTER_CONFIG, is_adapter, merge
from hpctrain_plugins.checkpoints.formats.steps import leads_to, step_folder, step_number
from hpctrain_plugins.checkpoints.formats.zero_files import Partition
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.tensors import Model, Tensor

HPCTRAIN_API = 1


def _holds(path: Path) -> bool:
    return path.is_dir() and bool(zero_files.optim_files(path)) and not neox_shards.holds(path)


def detect(path: Path) -> bool:
    """Optimizer files of ranks lie in the folder or one step below."""
    return leads_to(path, _holds)


def read(path: Path, options: ConvertOptions) -> Model:
    """The model of one step; an adapter that was trained alone is merged into its base."""
    step = step_folder(path, options.tag, "latest", _holds)
    partitions = zero_files.read(step)
    if options.ranks is not None and len(partitions) == 1:
        return zero_ranks.state(path, partitions[0])
    if len(partitions) > 1:
        message = f"{step} was trained with {len(partitions)} tensor-parallel ranks"
        raise ConfigError.of("checkpoint-unsupported", message, where=str(step), hint="--from neox --masters")
    model = _weights(partitions[0])
    home = next((p for p in (path, step.parent) if (p / "config.json").is_file()), step.parent)
    model.config = config_of(home, options)
    model.files = beside(options.tokenizer or home)
    model.step = step_number(step.name)
    if not any(is_adapter(name) for name in model.tensors):
        _tie(model)
        return model
    adapter = next((p for p in (path, step.parent, step) if (p / ADAPTER_CONFIG).is_file()), None)
    if adapter is None:
        message = f"{step} holds an adapter but no {ADAPTER_CONFIG} lies beside it"
        raise ConfigError.of(
            "checkpoint-config", message, where=str(step), hint=f"copy {ADAPTER_CONFIG} to {path}"
        )
    config = read_json(adapter / ADAPTER_CONFIG)
    return merge(model, config, lambda: find_base(adapter, config, options), may_hold_base=True)


def _weights(partition: Partition) -> Model:
    trainable, frozen, module = partition.trainable(), partition.frozen(), partition.module()
    shared: dict[str, str] = dict(partition.metadata.get("shared_params") or {})
    buffers = set(partition.metadata.get("buffer_names") or ())
    tensors: dict[str, Tensor] = {**frozen, **trainable}
    model = Model(tensors, tied=shared)
    for name, tensor in module.items():
        if name in tensors:
            model.ignored[f"module.{name}"] = "the rounded copy of a weight the optimizer holds"
        elif name in shared:
            model.ignored[f"module.{name}"] = f"shared with {shared[name]}"
        else:
            tensors[name] = tensor
            if name not in buffers:
                model.decisions["frozen_from_module"] = True
    model.crcs = {a.path: a.crcs for a in (*partition.optim, *partition.model)}
    model.decisions |= {"zero_stage": partition.stage, "data_parallel_ranks": len(partition.optim)}
    return model


def _tie(model: Model) -> None:
    """Shared weights are written once when the configuration says so, else under every name."""
    for alias, owner in model.tied.items():
        if owner not in model.tensors or alias in model.tensors:
            continue
        if model.config.get("tie_word_embeddings", False):
            model.decisions[f"tied {alias}"] = owner
        else:
            model.tensors[alias] = model.tensors[owner].named(alias)
