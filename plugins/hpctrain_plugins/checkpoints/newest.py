"""The newest complete checkpoint below a folder, by the trainer's way to name them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hpctrain.errors import ConfigError
from hpctrain_job import resume


def newest(folder: Path, name: str, last: str, say: Callable[[str], object]) -> Path:
    """Its path; `say` hears of damaged ones that are passed over, ConfigError when none is left."""
    found = resume.newest(folder, name, last, say)
    if found is None:
        several = resume.complete(folder, name, last)
        said = f"{folder} holds no complete checkpoint"
        if several:
            said = f"every checkpoint in {folder} contradicts its manifest"
        raise ConfigError.of("checkpoint-missing", said, where=str(folder))
    return found.path
