"""The checkpoints of an experiment, by the numbers of their steps."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import attrs

from hpctrain.errors import ConfigError
from hpctrain_job import resume

_NAMES = r"(?:global_step|checkpoint-|step[-_]?|epoch_\d+_step_)?(?P<step>\d+)"
"""How trainers call the folder of one step."""


@attrs.frozen
class Found:
    """One checkpoint and the step after which it was taken."""

    step: int
    path: Path

    @property
    def revision(self) -> str:
        """What the hub calls it."""
        return f"global_step{self.step}"


def checkpoints(folder: Path, name: str = _NAMES, complete: str = "") -> list[Found]:
    """Those in `folder`, oldest first; ConfigError when there are none, or two of one step."""
    found = [Found(c.step, c.path) for c in resume.complete(folder, name, complete)]
    if not found:
        said = f"{folder} holds no complete checkpoint"
        raise ConfigError.of("checkpoint-missing", said, where=str(folder))
    for one, other in pairwise(found):
        if one.step == other.step:
            said = f"{one.path.name} and {other.path.name} are the same step"
            raise ConfigError.of(
                "checkpoint-step", said, where=str(folder), hint=f"mv {other.path} elsewhere"
            )
    return found


_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*\Z", re.ASCII)
_LONGEST = 96


def repository(said: str) -> str:
    """ORG/EXPERIMENT as the hub allows it."""
    if not _REPOSITORY.match(said) or len(said) > _LONGEST or said.endswith(".git"):
        raise ConfigError.of("usage", f"{said!r} is no name of a model on the hub", hint="ORG/EXPERIMENT")
    return said


def raw_repository(said: str) -> str:
    """Where the trainer's own files go: beside the model, because a revision holds one of the two."""
    organisation, _, name = said.partition("/")
    return repository(f"{organisation}/neox-ckpt-{name}"[:_LONGEST].rstrip("-."))
