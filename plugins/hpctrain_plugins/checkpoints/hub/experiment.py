"""The checkpoints of an experiment, by the numbers of their steps."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import attrs

from hpctrain.plugin import ConfigError
from hpctrain_job import resume

_NAMES = r"(?:global_step|checkpoint-|step[-_]?|epoch_\d+_step_)?(?P<step>\d+)"
"""How trainers call the folder of one step."""


@attrs.frozen
class HubCheckpoint:
    """One checkpoint and the step after which it was taken."""

    step: int
    path: Path

    @property
    def revision(self) -> str:
        """The name of this checkpoint's revision on the hub."""
        return f"global_step{self.step}"


def checkpoints(folder: Path, name: str = _NAMES, complete: str = "") -> list[HubCheckpoint]:
    """The checkpoints in `folder`, oldest first; ConfigError when there are none, or two of one step."""
    ordered = [HubCheckpoint(c.step, c.path) for c in resume.complete(folder, name, complete)]
    if not ordered:
        message = f"{folder} holds no complete checkpoint"
        raise ConfigError.of("checkpoint-missing", message, where=str(folder))
    for earlier, later in pairwise(ordered):
        if earlier.step == later.step:
            message = f"{earlier.path.name} and {later.path.name} are the same step"
            raise ConfigError.of(
                "checkpoint-step", message, where=str(folder), hint=f"mv {later.path} elsewhere"
            )
    return ordered


_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*\Z", re.ASCII)
_LONGEST = 96


def repository(full_name: str) -> str:
    """ORG/EXPERIMENT as the hub allows it."""
    if not _REPOSITORY.match(full_name) or len(full_name) > _LONGEST or full_name.endswith(".git"):
        raise ConfigError.of(
            "usage", f"{full_name!r} is not the name of a model on the hub", hint="ORG/EXPERIMENT"
        )
    return full_name


def raw_repository(full_name: str) -> str:
    """Where the trainer's own files go: beside the model, because a revision holds one of the two."""
    organisation, _, name = full_name.partition("/")
    return repository(f"{organisation}/neox-ckpt-{name}"[:_LONGEST].rstrip("-."))
