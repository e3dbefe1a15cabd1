"""DeepSpeed ZeRO checkpoints of any stage: the full-precision weights out of the optimizer."""

from __future__ import annotations

from pathlib import Path

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints.containers import torchzip
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
    if not path.is_dir() or neox_shards.holds(path):
        return False
    return bool(zero_files.optim_files(path)) or zero_files.is_unpartitioned(path)


def detect(path: Path) -> bool:
    """Optimizer files of ranks lie in the folder or one step below."""
    return leads_to(path, _holds)


def read(path: Path, options: ConvertOptions) -> Model:
    """The model of one step; an adapter that was trained alone is merged into its base."""
    step = step_folder(path, options.tag, "latest", _holds)
    if zero_files.is_unpartitioned(step):
        model = _unpartitioned(step, options)
    else:
        partitions = zero_files.read(step)
        if len(partitions) > 1:
            message = f"{step} was trained with {len(partitions)} tensor-parallel ranks"
            hint = "--from neox --masters"
            raise ConfigError.of("checkpoint-unsupported", message, where=str(step), hint=hint)
        if options.ranks is not None:
            return zero_ranks.state(path, partitions[0])
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


def _unpartitioned(step: Path, options: ConvertOptions) -> Model:
    """Without ZeRO the weights lie in one file, as the model itself holds them."""
    if options.ranks is not None:
        message = f"{step} was written without ZeRO (stage 0), and goes on on any number of ranks"
        raise ConfigError.of("usage", message, where="--ranks", hint="resume from it as it is")
    archive = torchzip.open_archive(step / zero_files.WHOLE_MODEL)
    module = archive.value.get("module") if isinstance(archive.value, dict) else None
    if not isinstance(module, dict):
        message = f"{archive.path} holds no weights of a model"
        raise IntegrityError.of("checkpoint-damaged", message, where=str(archive.path))
    if archive.value.get("param_shapes"):
        message = f"{step} was written with ZeRO, and the files of its optimizer are missing"
        raise IntegrityError.of("checkpoint-incomplete", message, where=str(step))
    model = Model(archive.tensors(module), crcs={archive.path: archive.crcs})
    model.decisions = {"zero_stage": 0}
    return model


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
