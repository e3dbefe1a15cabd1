"""PEFT adapter folders, read as the merged model."""

from __future__ import annotations

from pathlib import Path

from hpctrain.plugin import IntegrityError
from hpctrain_plugins.checkpoints.containers import safetensors, torchzip
from hpctrain_plugins.checkpoints.formats.hf import read_json
from hpctrain_plugins.checkpoints.formats.hf.beside import beside
from hpctrain_plugins.checkpoints.formats.peft.base import find_base
from hpctrain_plugins.checkpoints.formats.peft.lora import ADAPTER_CONFIG, merge
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.tensors import Model

HPCTRAIN_API = 1

_WEIGHTS = "adapter_model.safetensors"
_PICKLED = "adapter_model.bin"


def detect(path: Path) -> bool:
    """An adapter with its weights lies in the folder."""
    weights = any((path / n).is_file() for n in (_WEIGHTS, _PICKLED))
    return weights and (path / ADAPTER_CONFIG).is_file()


def read(path: Path, options: ConvertOptions) -> Model:
    """The base with the adapter merged into it."""
    config = read_json(path / ADAPTER_CONFIG)
    if (path / _WEIGHTS).is_file():
        adapter = Model(safetensors.read_header(path / _WEIGHTS).tensors)
    elif (path / _PICKLED).is_file():
        archive = torchzip.open_archive(path / _PICKLED)
        adapter = Model(archive.tensors(archive.value), crcs={archive.path: archive.crcs})
    else:
        raise IntegrityError.of(
            "checkpoint-incomplete", f"{path / _WEIGHTS} is missing", where=str(path / _WEIGHTS)
        )
    merged = merge(adapter, config, lambda: find_base(path, config, options))
    merged.files.update(beside(options.tokenizer or path))
    return merged
