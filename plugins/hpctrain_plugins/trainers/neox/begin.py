"""Where the first attempt of a NeoX run starts: `load`, and how much of it NeoX reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from hpctrain.plugin import RunSpec
from hpctrain_plugins.trainers.external import starting
from hpctrain_plugins.trainers.external.config import Config

NAME = r"global_step(?P<step>\d+)"
"""How NeoX names a checkpoint in its folder."""
_STEP = re.compile(rf"(?P<folder>.+)/{NAME}")


@frozen(kw_only=True)
class Beginning:
    """A folder of checkpoints, the one of them that is read, and the files that must be there."""

    folder: str = ""
    settings: Mapping[str, Any] = field(factory=dict)
    needs: tuple[str, ...] = ()


def keys(config: Config) -> starting.StartKeys:
    """NeoX's own keys; what it does not save it need not look for in the run's own checkpoints."""
    unread = {"finetune": False, "iteration": None}
    unread |= {
        f"no_load_{part}": False for part in ("optim", "rng") if config.get(f"no_save_{part}") is not True
    }
    return starting.StartKeys(
        load=("load",), save=("save",), first_only={(key,): default for key, default in unread.items()}
    )


def of_run(run: RunSpec, config: Config) -> Beginning:
    """NeoX loads a folder: the checkpoint that its file `latest` names, or that of `iteration`."""
    text = starting.text_of(run, config, keys(config))
    match = _STEP.fullmatch(text)
    if match:
        step = int(match["step"])
        return Beginning(folder=match["folder"], settings={"iteration": step}, needs=(f"global_step{step}",))
    step = config.number("iteration", default=-1)
    return Beginning(folder=text, needs=(f"global_step{step}" if step >= 0 else "latest",))
