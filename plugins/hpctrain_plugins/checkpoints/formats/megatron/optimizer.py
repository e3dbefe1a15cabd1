"""Megatron's optimizer: the layout it was saved in, and its fp32 weights where that names them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hpctrain.plugin import ConfigError
from hpctrain_plugins.checkpoints.containers.distcp import Directory
from hpctrain_plugins.checkpoints.containers.unpickle import Inert

NAMED = "fully_reshardable"
"""The layout whose keys are the model's."""

_STATE = re.compile(r"(?:chained_\d+\.)?optimizer\.")
_MASTER = re.compile(r"(?:chained_\d+\.)?optimizer\.state\.(?:fp32_)?param\.(?P<key>.+)$")
_OPTION = "--dist-ckpt-optim-fully-reshardable"


def is_of_model(key: str) -> bool:
    """Whether a key is a weight's."""
    return not _STATE.match(key)


def layout_of(directory: Directory, common: Mapping[str, Any]) -> str:
    """What Megatron-Core calls the layout of the optimizer; empty where none was saved."""
    if all(map(is_of_model, directory.shapes)):
        return ""
    noted = _table(common.get("content_metadata")).get("distrib_optim_sharding_type")
    earlier = _table(common.get("optimizer")).get("param_state_sharding_type")  # before 0.13
    return str(noted or earlier or "unknown")


def _table(value: Any) -> dict[str, Any]:
    state = value.state if isinstance(value, Inert) else value
    return state if isinstance(state, dict) else {}


def words(layout: str) -> str:
    """What of the optimizer a reader should know, behind how much was left out."""
    return f"; the optimizer's layout is {layout}" if layout else ""


def masters(directory: Directory, layout: str, keys: set[str]) -> dict[str, str]:
    """Key of a weight -> key of its fp32 copy; ConfigError where the layout has no names."""
    if layout != NAMED:
        message = "it was saved without an optimizer"
        if layout:
            message = f"its optimizer's layout is {layout}, which does not name the weights by themselves"
        hint = f"leave --masters out; a run saves what it needs with {_OPTION}"
        raise ConfigError.of("checkpoint-unsupported", message, where="masters", hint=hint)
    master_keys = {match["key"]: key for key in directory.shapes if (match := _MASTER.match(key))}
    lacking = sorted(keys - set(master_keys))
    if lacking:
        message = f"the optimizer holds no fp32 copy of {lacking[0]}"
        raise ConfigError.of("checkpoint-unsupported", message, where=lacking[0], hint="leave --masters out")
    return {key: master_keys[key] for key in keys}
