"""Megatron-Core's distributed checkpoints, written: a box for each layer, which any tp, pp and ep loads."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints import quantised
from hpctrain_plugins.checkpoints.containers import torchzip_write
from hpctrain_plugins.checkpoints.containers.distcp_write import Stored, plan_files
from hpctrain_plugins.checkpoints.containers.unpickle import object_like
from hpctrain_plugins.checkpoints.copying.compute import target_dtype
from hpctrain_plugins.checkpoints.formats.fused import fuse_qkv
from hpctrain_plugins.checkpoints.formats.hf.families import FAMILIES
from hpctrain_plugins.checkpoints.formats.leftovers import leave_out
from hpctrain_plugins.checkpoints.formats.megatron import settings
from hpctrain_plugins.checkpoints.formats.megatron.names import (
    DENSE_OBJECTS,
    EMBEDDING,
    EXPERT_OBJECTS,
    EXPERTS,
    EXPERTS_NORM,
    GATED,
    HALVES,
    HEAD,
    LAYERS,
    LOCAL_EXPERTS_NORM,
    NORM,
    OUTER,
    OUTER_OBJECTS,
    QKV,
    SPARSE_OBJECTS,
    Rule,
)
from hpctrain_plugins.checkpoints.formats.megatron.steps import TRACKER, folder_name
from hpctrain_plugins.checkpoints.formats.neox.config import count_of, need
from hpctrain_plugins.checkpoints.formats.unlike import refusal
from hpctrain_plugins.checkpoints.options import NUMBERED, SINGLETON, STACKED, ConvertOptions
from hpctrain_plugins.checkpoints.output import Output
from hpctrain_plugins.checkpoints.tensors import Model, Tensor, concat, zeros

_ROWS = 128
"""The vocabulary is padded to a multiple of this and of tp, Megatron-LM's own default."""

_LAYERS, _EXTRA = "decoder.layers.", "_extra_state/shard"

_CONTENTS: dict[str, dict[str, bool]] = {
    STACKED: {"singleton_local_shards": False},
    NUMBERED: {"singleton_local_shards": False, "non_homogeneous_layers": True},
    SINGLETON: {"singleton_local_shards": True},
}
"""From what Megatron-Core since 0.13 knows in which form it finds the keys."""

_NOTE = (
    '{"sharded_backend": "torch_dist", "sharded_backend_version": 1, '
    '"common_backend": "torch", "common_backend_version": 1}'
)
"""What Megatron-Core writes last, to the byte."""


def plan(model: Model, options: ConvertOptions) -> Output:
    """The step with its tracker."""
    kind = str(need(model.config, "model_type"))
    if kind not in LAYERS:
        raise refusal("Megatron", kind, LAYERS)
    quantised.refuse(model, "Megatron")
    return _Writer(model, kind, options).output()


class _Writer:
    def __init__(self, model: Model, kind: str, options: ConvertOptions) -> None:
        self._model, self._options, self._config = model, options, model.config
        self._left = dict(model.tensors)
        self._rules = LAYERS[kind]
        self._heads = settings.heads_of(model.config)
        self._layers = count_of(model.config, "num_hidden_layers")
        self._experts = settings.experts_of(model.config)
        self._tied = FAMILIES[kind].is_tied(model.config)
        self._stored: dict[str, Stored] = {}
        self._decisions: dict[str, object] = {"config": model.config}

    def output(self) -> Output:
        embedding = self._vocabulary(EMBEDDING)
        args = settings.from_hf(self._config, embedding.shape[0], self._options.iteration or 0)
        for option in settings.unsaid(args):
            self._model.warnings.append(
                f"--use-checkpoint-args does not give {option}: start Megatron-LM with it"
            )
        self._add(EMBEDDING, [embedding], 0)
        for index in range(self._layers):
            for key, rule in self._rules.items():
                self._layer(index, key, rule)
        self._add(NORM, [self._take(OUTER[NORM])], None)
        if not self._tied:
            self._add(HEAD, [self._vocabulary(HEAD)], 0)
        leave_out(self._model, self._left, "Megatron", is_tied=self._tied)
        step = folder_name(self._options.iteration)
        files, directory = plan_files(
            self._stored, self._objects(), dict(self._aliases()), self._options.shard_bytes
        )
        files = [attrs.evolve(file, name=f"{step}/{file.name}") for file in files]
        common = {
            "args": object_like(("argparse", "Namespace"), args),
            "checkpoint_version": 3.0,
            "iteration": self._options.iteration or 0,
            "content_metadata": _CONTENTS[self._options.layer_keys],
        }
        files.append(torchzip_write.plan_file(f"{step}/common.pt", common))
        tracker = "release" if self._options.iteration is None else str(self._options.iteration)
        texts = {f"{step}/.metadata": directory, f"{step}/metadata.json": _NOTE.encode()}
        return Output(
            files=files,
            texts={**texts, TRACKER: tracker.encode()},
            copies={f"tokenizer/{name}": path for name, path in self._model.files.items()},
            decisions=self._decisions,
        )

    def _take(self, name: str) -> Tensor:
        if name not in self._left:
            raise IntegrityError.of("checkpoint-incomplete", f"the model has no {name}", where=name)
        return self._left.pop(name)

    def _vocabulary(self, key: str) -> Tensor:
        whole = self._take(OUTER[key])
        padding = -whole.shape[0] % (_ROWS * self._options.tp)
        if not padding:
            return whole
        self._decisions["original_vocab_size"] = whole.shape[0]
        return concat([whole, zeros(key, whole.dtype, (padding, *whole.shape[1:]))])

    def _layer(self, index: int, key: str, rule: Rule) -> None:
        """A tensor of one layer, where the model has it; what it lacks was missed when it was read."""
        prefix = f"model.layers.{index}."
        if "{e}" in rule.names[0]:
            for expert in range(self._experts):
                tensors = [self._take(prefix + name) for name in rule.of_expert(expert)]
                self._place(index, expert, key, rule, tensors)
        elif any(prefix + name in self._left for name in rule.names):
            tensors = [self._take(prefix + name) for name in rule.names]
            if rule.kind == QKV:
                tensors = [fuse_qkv(tensors, self._heads, "grouped")]
            self._place(index, None, key, rule, tensors)

    def _place(self, index: int, expert: int | None, key: str, rule: Rule, tensors: list[Tensor]) -> None:
        """Tensors of a layer, or of an expert of it, under the key of the form that is written."""
        at, counts = ([], []) if expert is None else ([expert], [self._experts])
        tp = 0 if expert is None else 1  # ranks share experts whole
        form = self._options.layer_keys
        if form == STACKED:
            at, counts, key = [index, *at], [self._layers, *counts], _LAYERS + key
        else:
            key = f"{_LAYERS}{index}.{key}"
        if form == SINGLETON:
            at, counts = [], []
            key = key if expert is None else key.replace(EXPERTS, f"{EXPERTS}{expert}.")
        if form == SINGLETON and rule.kind == GATED and key.endswith("weight"):
            for ending, tensor in zip(HALVES, tensors, strict=True):
                self._add(key.removesuffix("weight") + ending, [tensor], rule.axis, tp=tp)
        else:
            self._add(key, tensors, rule.axis, tuple(counts), tuple(at), tp=tp)

    def _aliases(self) -> Iterator[tuple[str, str]]:
        """The norm in front of experts under its other name."""
        if self._experts:
            numbered = [f"{_LAYERS}{index}." for index in range(self._layers)]
            for layer in [_LAYERS] if self._options.layer_keys == STACKED else numbered:
                yield layer + LOCAL_EXPERTS_NORM, layer + EXPERTS_NORM

    def _add(
        self,
        key: str,
        tensors: list[Tensor],
        axis: int | None,
        counts: tuple[int, ...] = (),
        at: tuple[int, ...] = (),
        tp: int = 0,
    ) -> None:
        """Tensors one below the other, at place `at` of `counts`, in a box for each rank that will ask."""
        rows = sum(tensor.shape[0] for tensor in tensors)
        shape = (*counts, rows, *tensors[0].shape[1:])
        dtype = target_dtype(tensors[0], self._options.target_dtype)
        stored = self._stored.setdefault(key, Stored(shape, dtype))
        if (stored.shape, stored.dtype) != (shape, dtype):
            message = (
                f"{key} is {stored.dtype} {list(stored.shape)} in one layer, {dtype} {list(shape)} in another"
            )
            raise ConfigError.of("checkpoint-unsupported", message, where=key, hint="--dtype bf16")
        start = 0
        for tensor in tensors:
            for piece, before in _cut(tensor, axis, tp or self._options.tp):
                place = [start, *(0 for _ in tensor.shape[1:])]
                place[axis or 0] += before
                box_shape = (*(1 for _ in counts), *piece.shape)
                stored.boxes.append(((*at, *place), piece.shaped(*box_shape)))
            start += tensor.shape[0]

    def _objects(self) -> list[str]:
        """The names of objects that layers ask for and that hold nothing."""
        of_layer = SPARSE_OBJECTS if self._experts else DENSE_OBJECTS
        out = [f"{module}.{_EXTRA}_0_1" for module in OUTER_OBJECTS]
        for i in range(self._layers):
            out += [self._object(i, None, module) for module in of_layer]
            out += [self._object(i, e, module) for module in EXPERT_OBJECTS for e in range(self._experts)]
        return out

    def _object(self, index: int, expert: int | None, module: str) -> str:
        """The name of a module's object, which says its place as a tensor's box does."""
        form = self._options.layer_keys
        if form == STACKED:
            at, counts = str(index), str(self._layers)
            if expert is not None:
                at, counts = f"{at}.{expert}", f"{counts}.{self._experts}"
            return f"{_LAYERS}{module}.{_EXTRA}_{at}_{counts}"
        key = f"{_LAYERS}{index}.{module}"
        if form == NUMBERED and expert is not None:
            return f"{key}.{_EXTRA}_{expert}_{self._experts}"
        if expert is not None:
            key = key.replace(EXPERTS, f"{EXPERTS}{expert}.")
        return f"{key}.{_EXTRA}_0_1"


def _cut(tensor: Tensor, axis: int | None, tp: int) -> Iterator[tuple[Tensor, int]]:
    """The share of each rank and where it begins along the axis; the whole where it cannot be shared."""
    if axis is None or tensor.shape[axis] % tp:
        yield tensor, 0
        return
    for rank, piece in enumerate(tensor.chunk(axis, tp)):
        yield piece, rank * piece.shape[axis]
