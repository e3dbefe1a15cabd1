"""Whether source and target compute the same: `--verify logits`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from hpctrain.plugin import IntegrityError
from hpctrain_plugins.checkpoints.copying.casts import Array
from hpctrain_plugins.checkpoints.formats import nanotron as nanotron_format
from hpctrain_plugins.checkpoints.formats import neox as neox_format
from hpctrain_plugins.checkpoints.formats.neox.config import count_of
from hpctrain_plugins.checkpoints.logits import hf, library, nanotron, neox
from hpctrain_plugins.checkpoints.logits.weights import Weights
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.tensors import Model

_TOKENS = 12
_LIMIT = 1e-6
_EPSILON = {"BF16": 2.0**-8, "F16": 2.0**-11, "F32": 2.0**-24}
_GROWTH = 16
"""How far one rounding of each weight may grow on its way to the logits, at most."""


@attrs.frozen
class Side:
    """One checkpoint: where it lies, its format, and what reading it gave."""

    path: Path
    format: str
    model: Model
    options: ConvertOptions

    @property
    def name(self) -> str:
        """The name of the trainer, or "hf", whose way to compute logits is used."""
        return self.format if self.format in ("neox", "nanotron") else "hf"


def compare(source: Side, target: Side, exactness: str) -> dict[str, Any]:
    """What was found, for the record; IntegrityError when the logits differ.

    A source is rounded as its weights were, so only what was computed anew may differ by more than
    the order of sums.
    """
    vocab = min(count_of(side.model.config, "vocab_size") for side in (source, target))
    tokens = [int(t) for t in np.random.default_rng(7).integers(0, vocab, _TOKENS)]
    dtype = source.options.target_dtype
    have = _logits(source, tokens, dtype)[:, :vocab]
    got = _logits(target, tokens, "keep")[:, :vocab]
    difference = _difference(have, got)
    limit = max(_LIMIT, _GROWTH * _coarsest(target.model)) if exactness == "arithmetic" else _LIMIT
    if not difference <= limit:
        _refuse(f"logits of {target.format} differ from those of {source.path}", source, difference, limit)
    return {
        "tokens": _TOKENS,
        "source_flow": source.name,
        "target_flow": target.name,
        "difference": difference,
        "limit": limit,
        "library": _by_library(source, target, tokens, have, max(limit, library.LIMIT)),
    }


def _by_library(
    source: Side, target: Side, tokens: Sequence[int], have: Array, limit: float
) -> dict[str, Any]:
    """What transformers makes of the side that is its own, beside what the source computes."""
    side = next((s for s in (target, source) if s.format == "hf"), None)
    if side is None or (side is source and source.options.dtype != "keep"):
        return {"reason": "neither side as it is computed is a folder of transformers"}
    opinion = library.ask(side.path, side.model, tokens)
    if opinion.logits is None:
        return {"reason": opinion.reason}
    difference = _difference(have, opinion.logits[:, : have.shape[1]])
    if not difference <= limit:
        message = f"logits that {opinion.by} computes from {side.format} differ from those of {source.path}"
        _refuse(message, source, difference, limit)
    return {"by": opinion.by, "difference": difference}


def _difference(have: Array, got: Array) -> float:
    """How far the farthest logit is away, as a share of the largest."""
    return float(np.abs(have - got).max() / max(np.abs(have).max(), np.finfo(np.float64).tiny))


def _refuse(message: str, source: Side, difference: float, limit: float) -> None:
    raise IntegrityError.of(
        "checkpoint-logits",
        f"{message} by {difference:.1e}",
        where=str(source.path),
        notes=(f"{limit:.1e} of the largest logit is allowed",),
    )


def _coarsest(model: Model) -> float:
    return max(_EPSILON.get(t.dtype, 0.0) for t in model.tensors.values())


def _logits(side: Side, tokens: Sequence[int], dtype: str) -> Array:
    weights = Weights(dtype)
    try:
        if side.name == "neox":
            shards, config = neox_format.opened(side.path, side.options)
            order = str(side.model.decisions.get("neox_gqa_layout", "per-head"))
            return neox.flow(shards, config, order, tokens, weights)
        if side.name == "nanotron":
            tensors, config = nanotron_format.opened(side.path, side.options)
            pairs = bool(side.model.decisions["rope_interleaved"])
            return nanotron.flow(tensors, config, pairs, tokens, weights)
        return hf.flow(side.model, tokens, weights)
    finally:
        weights.close()
