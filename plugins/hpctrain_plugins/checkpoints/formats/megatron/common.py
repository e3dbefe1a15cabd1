"""What Megatron-LM keeps beside its tensors: `common.pt`, and the arguments that it was started with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpctrain.plugin import IntegrityError
from hpctrain_plugins.checkpoints.containers import torchzip
from hpctrain_plugins.checkpoints.containers.unpickle import Inert

COMMON = "common.pt"
INERT = ("megatron.", "signal", "types", "numpy", "pathlib", "enum", "datetime")
"""Where the classes are from of what Megatron-LM keeps among its arguments; none is made."""


def read_common(step: Path) -> dict[str, Any]:
    """The table of everything that ranks do not share."""
    file = step / COMMON
    if not file.is_file():
        raise IntegrityError.of("checkpoint-incomplete", f"{file} is missing", where=str(file))
    value = torchzip.open_archive(file, inert=INERT).value
    if not isinstance(value, dict):
        raise IntegrityError.of("checkpoint-damaged", f"{file} holds no table", where=str(file))
    return value


def arguments(common: dict[str, Any]) -> dict[str, Any]:
    """The arguments that Megatron-LM was started with; empty where another trainer saved."""
    args = common.get("args")
    return args.state if isinstance(args, Inert) and isinstance(args.state, dict) else {}
