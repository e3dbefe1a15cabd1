"""Tensors of a Hugging Face model that another format has no place for."""

from __future__ import annotations

from collections.abc import Mapping

from hpctrain.plugin import ConfigError
from hpctrain_plugins.checkpoints.tensors import Model, Tensor

_EMBEDDING, _HEAD = "model.embed_tokens.weight", "lm_head.weight"


def leave_out(model: Model, tensors: Mapping[str, Tensor], program: str, *, is_tied: bool) -> None:
    """Say in `model` why each is left out; ConfigError for one that `program` would have to know."""
    for name in sorted(tensors):
        if name.endswith("rotary_emb.inv_freq"):
            model.ignored[name] = "computed from the configuration"
        elif name == _HEAD and is_tied:
            model.ignored[name] = "tied to the embedding"
            model.replicas.append((model.tensors[_EMBEDDING], tensors[name]))
        else:
            message = f"{program} has no place for {name}"
            raise ConfigError.of("checkpoint-unsupported", message, where=name)
