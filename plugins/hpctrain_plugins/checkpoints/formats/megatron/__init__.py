"""Megatron-Core's distributed checkpoints (`torch_dist`), read: tensors, however many ranks saved them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpctrain.plugin import ConfigError
from hpctrain_plugins.checkpoints import record
from hpctrain_plugins.checkpoints.containers import distcp
from hpctrain_plugins.checkpoints.foreign import megatron_backend
from hpctrain_plugins.checkpoints.formats.grids import assemble
from hpctrain_plugins.checkpoints.formats.hf import config_of, restored
from hpctrain_plugins.checkpoints.formats.hf.beside import beside
from hpctrain_plugins.checkpoints.formats.megatron import optimizer, settings, training, write
from hpctrain_plugins.checkpoints.formats.megatron.common import arguments, read_common
from hpctrain_plugins.checkpoints.formats.megatron.decoder import decoder
from hpctrain_plugins.checkpoints.formats.megatron.layers import of_layers
from hpctrain_plugins.checkpoints.formats.megatron.names import place_of
from hpctrain_plugins.checkpoints.formats.megatron.steps import step_of
from hpctrain_plugins.checkpoints.formats.steps import leads_to, step_number
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.output import Output
from hpctrain_plugins.checkpoints.tensors import Model

HPCTRAIN_API = 1
CHOICES = ("tp", "iteration", "layer_keys", "shard_bytes")


def _holds(path: Path) -> bool:
    return megatron_backend(path) == "torch_dist" and (path / distcp.DIRECTORY).is_file()


def detect(path: Path) -> bool:
    """A directory file and Megatron-Core's own note lie in the folder or one step below."""
    return leads_to(path, _holds)


def plan(model: Model, options: ConvertOptions) -> Output:
    """A step with a box for each layer, as Megatron-Core saves it; a training with its optimizer."""
    if isinstance(model, training.Training):
        return training.plan(model, options)
    return write.plan(model, options)


def read(path: Path, options: ConvertOptions) -> Model:
    """The weights of one step, with `options.masters` its optimizer's fp32 ones; or all that it holds."""
    step = step_of(path, options.tag, _holds)
    directory = distcp.read(step)
    common = read_common(step)
    if options.optimizer:
        return training.read(step, directory, common, options)
    noted = record.decisions(step.parent)
    layout = optimizer.layout_of(directory, common)
    model = Model({}, step=step_number(step.name))
    keys = {key: key for key in directory.shapes if optimizer.is_of_model(key)}
    read_from = optimizer.masters(directory, layout, set(keys)) if options.masters else keys
    boxes = {key: optimizer.shards_of(directory, saved, model) for key, saved in read_from.items()}
    shapes = {key: directory.shapes[key] for key in keys}
    outer = {key: assemble(key, boxes[key], shapes[key]) for key in keys if not place_of(key).in_layer}
    layers = of_layers(boxes, shapes)
    model.config = _config(step, common, options)
    decoder(model, outer, layers, noted.get("original_vocab_size"))
    model.config = restored(model.config, noted.get("config"))
    model.files = beside(options.tokenizer or step.parent / "tokenizer")
    ignored_count = directory.entries - len(keys)
    if ignored_count:
        model.ignored["everything else"] = (
            f"{ignored_count} entries that are not weights{optimizer.words(layout)}"
        )
    return model


def _config(step: Path, common: dict[str, Any], options: ConvertOptions) -> dict[str, Any]:
    """The configuration that the user names, or what Megatron-LM's own arguments say."""
    if options.config:
        return config_of(step, options)
    args = arguments(common)
    if not args:
        message = f"{step} does not say the model's settings: it was not saved by Megatron-LM"
        hint = "--config FILE      (the model's config.json)"
        raise ConfigError.of("checkpoint-config", message, where=str(step), hint=hint)
    return settings.to_hf(args, step)
