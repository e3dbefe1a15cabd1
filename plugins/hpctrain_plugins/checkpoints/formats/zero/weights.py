"""The model of a ZeRO checkpoint: what the optimizer holds in full precision, and what was not trained."""

from __future__ import annotations

from pathlib import Path

from hpctrain.plugin import ConfigError
from hpctrain_plugins.checkpoints.formats.hf import config_of, read_json
from hpctrain_plugins.checkpoints.formats.hf.beside import beside
from hpctrain_plugins.checkpoints.formats.hf.in_memory import as_in_files
from hpctrain_plugins.checkpoints.formats.peft.base import find_base
from hpctrain_plugins.checkpoints.formats.peft.lora import ADAPTER_CONFIG, is_adapter, merge
from hpctrain_plugins.checkpoints.formats.steps import step_number
from hpctrain_plugins.checkpoints.formats.zero_files import Trained
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.tensors import Model, Tensor


def of_step(source: Trained) -> Model:
    """Every weight and buffer, each once."""
    shared: dict[str, str] = dict(source.metadata.get("shared_params") or {})
    buffers = set(source.metadata.get("buffer_names") or ())
    tensors: dict[str, Tensor] = {**source.frozen(), **source.parameters()}
    model = Model(tensors, tied=shared)
    for name, tensor in source.module().items():
        if name in tensors:
            model.ignored[f"module.{name}"] = "the rounded copy of a weight the optimizer holds"
        elif name in shared:
            model.ignored[f"module.{name}"] = f"shared with {shared[name]}"
        else:
            tensors[name] = tensor
            if name not in buffers:
                model.decisions["frozen_from_module"] = True
    model.crcs = {archive.path: archive.crcs for archive in source.archives}
    model.decisions["zero_stage"] = source.stage
    return model


def finished(model: Model, path: Path, step: Path, options: ConvertOptions) -> Model:
    """The model with its configuration; an adapter that was trained alone is merged into its base."""
    home = next((p for p in (path, step.parent) if (p / "config.json").is_file()), step.parent)
    model.config = config_of(home, options)
    model.files = beside(options.tokenizer or home)
    model.step = step_number(step.name)
    if not any(is_adapter(name) for name in model.tensors):
        as_in_files(model)
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


def _tie(model: Model) -> None:
    """Shared weights are written once when the configuration says so, else under every name."""
    for alias, owner in model.tied.items():
        if owner not in model.tensors or alias in model.tensors:
            continue
        if model.config.get("tie_word_embeddings", False):
            model.decisions[f"tied {alias}"] = owner
        else:
            model.tensors[alias] = model.tensors[owner].named(alias)
