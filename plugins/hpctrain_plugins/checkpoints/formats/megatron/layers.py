"""The tensors of every layer and expert, from keys that count them by a number or by an axis."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TypeAlias

from hpctrain.plugin import IntegrityError
from hpctrain_plugins.checkpoints.formats.grids import Box, assemble
from hpctrain_plugins.checkpoints.formats.megatron.names import HALVES, place_of
from hpctrain_plugins.checkpoints.tensors import Tensor, concat

Cell: TypeAlias = tuple[int, int | None]
"""A layer, and an expert of it where the tensor is one's."""


def of_layers(
    boxes: Mapping[str, Sequence[Box]], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, dict[Cell, Tensor]]:
    """Name within a layer -> the tensor of each cell; tensors around the layers are left out."""
    out: defaultdict[str, dict[Cell, Tensor]] = defaultdict(dict)
    for key, parts in boxes.items():
        place = place_of(key)
        if not place.in_layer:
            continue
        counted = (place.layer is None) + (place.of_expert and place.expert is None)
        for index, tensor in unstacked(key, parts, shapes[key], counted):
            numbers = list(index)
            layer = numbers.pop(0) if place.layer is None else place.layer
            expert = (numbers.pop(0) if place.expert is None else place.expert) if place.of_expert else None
            cell = (layer, expert)
            if cell in out[place.suffix]:
                raise IntegrityError.of("checkpoint-stale", f"{key} is there in two forms", where=key)
            out[place.suffix][cell] = tensor
    _join_halves(out)
    return dict(out)


def unstacked(
    key: str, boxes: Sequence[Box], shape: tuple[int, ...], axes: int
) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """The tensor at each place of the first `axes` axes."""
    cells: defaultdict[tuple[int, ...], list[Box]] = defaultdict(list)
    for box in boxes:
        for local in product(*map(range, box.tensor.shape[:axes])):
            tensor = box.tensor
            for at in local:
                tensor = tensor.part(0, at, at + 1).shaped(*tensor.shape[1:])
            place = tuple(at + start for at, start in zip(local, box.offset, strict=False))
            cells[place].append(Box(box.offset[axes:], tensor))
    for place in product(*map(range, shape[:axes])):
        if place not in cells:
            where = ", ".join(map(str, place))
            raise IntegrityError.of("checkpoint-incomplete", f"{key} has no data at {where}", where=key)
        yield place, assemble(key, cells[place], shape[axes:])


def _join_halves(out: dict[str, dict[Cell, Tensor]]) -> None:
    gate_ending, up_ending = HALVES
    for name in [n for n in out if n.endswith(gate_ending)]:
        gates, ups = out.pop(name), out.pop(name.removesuffix(gate_ending) + up_ending, {})
        if set(gates) != set(ups):
            raise IntegrityError.of(
                "checkpoint-incomplete", f"{name} has no {up_ending} beside it", where=name
            )
        joined = {cell: concat([gates[cell], ups[cell]]) for cell in gates}
        out[name.removesuffix(gate_ending) + "weight"] = joined
