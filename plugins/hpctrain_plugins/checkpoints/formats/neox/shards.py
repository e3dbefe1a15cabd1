"""The files of a GPT-NeoX checkpoint: three layouts, one answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs

from hpctrain.plugin import HpctrainError, IntegrityError
from hpctrain_plugins.checkpoints.bands import Checksum
from hpctrain_plugins.checkpoints.containers import torchzip
from hpctrain_plugins.checkpoints.containers.unpickle import TensorRef
from hpctrain_plugins.checkpoints.tensors import Tensor

_LAYER = re.compile(r"layer_(\d+)-model_(\d+)-model_states\.pt$")
_RANK = re.compile(r"mp_rank_(\d+)_model_states\.pt$")
_KEY = re.compile(r"(?:sequential\.)?(\d+)\.(.+)$")


@attrs.define
class Shards:
    """Every tensor by layer and name, one per tensor-parallel rank."""

    tp: int = 0
    layout: str = ""
    tensors: dict[tuple[int, str], list[Tensor]] = attrs.field(factory=dict)
    crcs: dict[Path, list[Checksum]] = attrs.field(factory=dict)
    args: dict[str, Any] = attrs.field(factory=dict)
    """What the trainer noted beside the weights."""
    ignored: dict[str, str] = attrs.field(factory=dict)

    @property
    def layers(self) -> set[int]:
        """The layers that hold tensors."""
        return {layer for layer, _ in self.tensors}


def holds(path: Path) -> bool:
    """Layer files, or rank files without a ZeRO checkpoint's many owners."""
    if any(_LAYER.match(p.name) for p in path.glob("layer_*-model_*-model_states.pt")):
        return True
    ranks = list(path.glob("mp_rank_*_model_states.pt"))
    return bool(ranks) and _is_sequential(ranks[0])


def _is_sequential(file: Path) -> bool:
    try:
        return bool(_numbered(_module(torchzip.open_archive(file).value)))
    except HpctrainError:
        return True  # a damaged file is reported by who reads it


def _module(value: Any) -> Any:
    inner = value.get("module") if isinstance(value, dict) else None
    if isinstance(inner, dict) and set(inner) == {"module"}:
        return inner["module"]
    return inner


def _numbered(module: Any) -> dict[tuple[int, str], TensorRef]:
    if not isinstance(module, dict):
        return {}
    matches = {key: _KEY.match(str(key)) for key in module}
    return {(int(m[1]), m[2]): module[k] for k, m in matches.items() if m}


def read(path: Path) -> Shards:
    """All shards of a step folder, checked for completeness."""
    files = {(int(m[1]), int(m[2])): p for p in path.iterdir() if (m := _LAYER.match(p.name))}
    ranks = {int(m[1]): p for p in path.iterdir() if (m := _RANK.match(p.name))}
    if files:
        shards = _pipelined(path, files)
        # Nothing but settings of the first is used; code in any other is still told, never carried on.
        archives = [torchzip.open_archive(ranks[rank]) for rank in sorted(ranks)]
        if archives:
            _note(shards, archives[0].value)
        return shards
    return _sequential(path, ranks)


def _pipelined(path: Path, files: dict[tuple[int, int], Path]) -> Shards:
    tp = 1 + max(rank for _, rank in files)
    shards = Shards(tp=tp, layout="pipelined")
    for layer in sorted({layer for layer, _ in files}):
        lost = [r for r in range(tp) if (layer, r) not in files]
        if lost:
            name = f"layer_{layer:02d}-model_{lost[0]:02d}-model_states.pt"
            raise IntegrityError.of(
                "checkpoint-incomplete", f"{path / name} is missing", where=str(path / name)
            )
        for rank in range(tp):
            archive = torchzip.open_archive(files[layer, rank])
            if not isinstance(archive.value, dict):
                raise IntegrityError.of("checkpoint-damaged", f"{archive.path} holds no tensors by name")
            refs = {(layer, str(k)): v for k, v in archive.value.items()}
            _take(shards, archive, refs, rank, {layer})
    return shards


def _sequential(path: Path, ranks: dict[int, Path]) -> Shards:
    shards = Shards(tp=len(ranks), layout="sequential")
    for rank in range(len(ranks)):
        if rank not in ranks:
            name = path / f"mp_rank_{rank:02d}_model_states.pt"
            raise IntegrityError.of("checkpoint-incomplete", f"{name} is missing", where=str(name))
        archive = torchzip.open_archive(ranks[rank])
        _take(shards, archive, _numbered(_module(archive.value)), rank, None)
        if rank == 0:
            _note(shards, archive.value)
    return shards


def _take(
    shards: Shards,
    archive: torchzip.Archive,
    refs: dict[tuple[int, str], Any],
    rank: int,
    layers: set[int] | None,
) -> None:
    """Add one file's tensors; every rank must hold the same names (of `layers`, or of all)."""
    shards.crcs[archive.path] = archive.crcs
    for (layer, name), ref in refs.items():
        label = f"{layer}.{name}"
        if not isinstance(ref, TensorRef):
            shards.ignored[label] = "not a tensor"
            continue
        ranks = shards.tensors.setdefault((layer, name), [])
        if len(ranks) != rank:
            message = f"{label} is in {archive.path} but not in every rank before"
            raise IntegrityError.of("checkpoint-stale", message, where=label)
        ranks.append(archive.tensor(label, ref))
    for (layer, name), ranks in shards.tensors.items():
        if (layers is None or layer in layers) and len(ranks) <= rank:
            message = f"{layer}.{name} is missing from {archive.path}"
            raise IntegrityError.of("checkpoint-incomplete", message, where=f"{layer}.{name}")


def _note(shards: Shards, value: Any) -> None:
    """What a rank file says of the run, as plain settings."""
    if not isinstance(value, dict):
        return
    args = value.get("args")
    if isinstance(args, dict):
        shards.args = {k: v for k, v in args.items() if isinstance(v, (int, float, str, bool))}
    if isinstance(value.get("mp_world_size"), int):
        shards.args.setdefault("mp_world_size", value["mp_world_size"])
