"""Stages 1 and 2 for a number of ranks: each group is one long vector that is cut into equal slices."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import attrs

from hpctrain_plugins.checkpoints.containers.pickle_edit import with_number
from hpctrain_plugins.checkpoints.containers.torchzip import pickle_of
from hpctrain_plugins.checkpoints.containers.torchzip_write import Saved, plan_copy
from hpctrain_plugins.checkpoints.containers.unpickle import object_like
from hpctrain_plugins.checkpoints.formats.zero.optimizer import State
from hpctrain_plugins.checkpoints.formats.zero_files import BASE_OPTIMIZER, MASTERS, number_of
from hpctrain_plugins.checkpoints.output import OutFile
from hpctrain_plugins.checkpoints.tensors import Tensor, concat, zeros

_FRAGMENT = ("deepspeed.utils.tensor_fragment", "fragment_address")


def optimizer_of(model: State, rank: int, ranks: int) -> dict[str, Any]:
    """What the optimizer holds on one rank."""
    stage = model.source.stage
    slices = [_Slices(model, list(group.shapes), rank, ranks) for group in model.groups]
    states = {}
    for number, (group, part) in enumerate(zip(model.groups, slices, strict=True)):
        moments = {moment: part.of(moment, padded=True) for moment in model.moments}
        states[number] = {**group.once, **{k: Saved(t, t.dtype) for k, t in moments.items()}}
    settings = [{**group.settings, "params": [i]} for i, group in enumerate(model.groups)]
    return {
        **model.optimizer,
        BASE_OPTIMIZER[stage]: {"state": states, "param_groups": settings},
        MASTERS[stage]: [Saved(part.of("", padded=False), "F32") for part in slices],
        "group_paddings": [part.padding for part in slices],
        "partition_count": [ranks] * len(slices),
        "param_slice_mappings": [part.mapping() for part in slices],
    }


def model_files(model: State, ranks: int) -> list[OutFile]:
    """The weights as the model holds them, untouched; it notes for how many ranks the others are."""
    archive = model.source.model[0]
    text = with_number(pickle_of(archive.path), "dp_world_size", ranks, str(archive.path))
    return [plan_copy(f"{model.tag}/{archive.path.name}", archive, text)]


@attrs.define
class _Slices:
    """One rank's share of a group: its parameters one after the other, in slices of equal length.

    The length of the whole is a multiple of twice the ranks; only the last rank leaves its padding out
    of the weights: https://github.com/deepspeedai/DeepSpeed/blob/v0.19.8/deepspeed/runtime/zero/stage_1_and_2.py
    """

    _model: State
    _names: list[str]
    _rank: int
    _ranks: int

    @property
    def total(self) -> int:
        return sum(self._model.tensors[name].numel for name in self._names)

    @property
    def length(self) -> int:
        return -(-self.total // (2 * self._ranks)) * 2

    @property
    def padding(self) -> int:
        last = self._rank == self._ranks - 1
        return self.length * self._ranks - self.total if last else 0

    def of(self, moment: str, *, padded: bool) -> Tensor:
        tensors = [self._model.tensors[number_of(name, moment)] for name in self._names]
        line = concat([t.shaped(t.numel) for t in tensors])
        spare = zeros(line.name, line.dtype, (self.length * self._ranks - self.total,))
        full = concat([line, spare]) if spare.numel else line
        start = self._rank * self.length
        stop = start + self.length - (0 if padded else min(self.padding, self.length))
        return full.part(0, start, stop)

    def mapping(self) -> Any:
        """Which parameters lie in the slice, and where."""
        out, at, start = OrderedDict(), 0, self._rank * self.length
        for name in self._names:
            end = at + self._model.tensors[name].numel
            low, high = max(at, start), min(end, start + self.length)
            if low < high:
                out[name] = object_like(_FRAGMENT, {"numel": high - low, "start": low - start})
            at = end
        return out
