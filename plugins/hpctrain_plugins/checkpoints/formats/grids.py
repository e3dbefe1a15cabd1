"""Boxes of a tensor put together: what sharded savers write is any grid along any axes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from hpctrain.plugin import IntegrityError
from hpctrain_plugins.checkpoints.containers.distcp import Directory
from hpctrain_plugins.checkpoints.formats.hf import config_of
from hpctrain_plugins.checkpoints.formats.hf.beside import beside
from hpctrain_plugins.checkpoints.formats.hf.in_memory import as_in_files
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.tensors import Model, Tensor, concat

_TIED = (
    ("lm_head.weight", "model.embed_tokens.weight"),
    ("embed_out.weight", "gpt_neox.embed_in.weight"),
)
"""A head, and the embedding that it may be."""


@attrs.frozen
class Box:
    """A part of a tensor and where its first element lies in the whole."""

    offset: tuple[int, ...]
    tensor: Tensor


def boxes_of(directory: Directory, name: str, model: Model) -> list[Box]:
    """All boxes of a tensor of torch's distributed checkpoints; the model learns their checksums."""
    items = directory.items.get(name)
    if not items:
        raise IntegrityError.of("checkpoint-incomplete", f"{name} has no data", where=name)
    boxes = []
    for item in items:
        tensor = item.tensor(model.crcs)
        boxes.append(Box(item.offset or (0,) * len(tensor.shape), tensor))
    return boxes


def assemble(name: str, boxes: Sequence[Box], shape: tuple[int, ...]) -> Tensor:
    """The whole tensor; the boxes must tile it without gap or overlap."""
    filled = [b for b in boxes if b.tensor.numel] or list(boxes[:1])
    whole = _along(name, filled, 0, shape).named(name)
    if whole.shape != shape:
        message = f"the parts of {name} make {list(whole.shape)}, not {list(shape)}"
        raise IntegrityError.of("checkpoint-shape", message, where=name)
    return whole


def _along(name: str, boxes: Sequence[Box], axis: int, shape: tuple[int, ...]) -> Tensor:
    if len(boxes) == 1 or axis == len(shape):
        if len(boxes) != 1 or any(boxes[0].offset[axis:]):
            raise IntegrityError.of("checkpoint-shape", f"parts of {name} overlap or are missing", where=name)
        return boxes[0].tensor
    slabs: dict[int, list[Box]] = {}
    for box in boxes:
        slabs.setdefault(box.offset[axis], []).append(box)
    parts, at = [], 0
    for start in sorted(slabs):
        if start != at:
            message = f"{name} has a gap or overlap at {at} of axis {axis}"
            raise IntegrityError.of("checkpoint-shape", message, where=name)
        lengths = {b.tensor.shape[axis] for b in slabs[start]}
        if len(lengths) != 1:
            raise IntegrityError.of("checkpoint-shape", f"parts of {name} do not fit together", where=name)
        parts.append(_along(name, slabs[start], axis + 1, shape))
        at += lengths.pop()
    return concat(parts, axis)


def describe(model: Model, step: Path, options: ConvertOptions) -> None:
    """Give the model what lies with its parts, or one folder above: the configuration and the tokenizer."""
    places = (step, step / ".hf_metadata", step.parent)
    home = next((p for p in places if (p / "config.json").is_file()), step)
    model.config = config_of(home, options)
    model.files = beside(options.tokenizer or home)
    as_in_files(model)
    _tie(model)
    check_embedding(model.tensors, model.config)


def _tie(model: Model) -> None:
    """A head that is the embedding is saved under both names, and written once: they must be the same."""
    for head, embedding in _TIED if model.config.get("tie_word_embeddings") else ():
        if head in model.tensors and embedding in model.tensors:
            model.replicas.append((model.tensors[embedding], model.tensors.pop(head)))
            model.decisions[f"tied {head}"] = embedding


def check_embedding(tensors: dict[str, Tensor], config: dict[str, object]) -> None:
    """The vocabulary is as long as the configuration says: a lost last rank shows nowhere else."""
    rows = config.get("vocab_size")
    for name, tensor in tensors.items():
        is_embedding = name.endswith(("embed_tokens.weight", "embed_in.weight", "wte.weight"))
        if is_embedding and isinstance(rows, int) and tensor.shape[0] < rows:
            message = f"{name} has {tensor.shape[0]} rows where the configuration says {rows}"
            raise IntegrityError.of("checkpoint-shape", message, where=name)
