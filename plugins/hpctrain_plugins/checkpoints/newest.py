"""The newest complete checkpoint below a folder, by the trainer's way to name them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hpctrain.plugin import ConfigError
from hpctrain_job import resume


def newest(folder: Path, name: str, last: str, say: Callable[[str], object]) -> Path:
    """The path of the newest whole checkpoint. `say` is called for each damaged one that is skipped;
    ConfigError when none is left."""
    checkpoint = resume.newest(folder, name, last, say)
    if checkpoint is None:
        several = resume.complete(folder, name, last)
        message = f"{folder} holds no complete checkpoint"
        if several:
            message = f"every checkpoint in {folder} contradicts its manifest"
        raise ConfigError.of("checkpoint-missing", message, where=str(folder))
    return checkpoint.path
