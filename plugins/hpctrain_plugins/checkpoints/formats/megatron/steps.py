"""Which step Megatron-LM means: its tracker file holds a number or `release`, and not a folder's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hpctrain.plugin import IntegrityError
from hpctrain_plugins.checkpoints.formats.steps import pointed, step_folder

TRACKER = "latest_checkpointed_iteration.txt"


def folder_name(iteration: int | None) -> str:
    """The folder of a step; a model that no training saved is released."""
    return "release" if iteration is None else f"iter_{iteration:07d}"


def step_of(path: Path, tag: str, holds: Callable[[Path], bool]) -> Path:
    """`path` itself, the folder called `tag`, the one that the tracker names, or the only one there is."""
    tracker = path / TRACKER
    if not tag and not holds(path) and tracker.is_file():
        text = pointed(tracker)
        if text != "release" and not text.isdecimal():
            message = f"{tracker} says {text[:40]!r} where Megatron-LM writes a number or release"
            raise IntegrityError.of("checkpoint-damaged", message, where=str(tracker), hint="--tag NAME")
        tag = folder_name(None if text == "release" else int(text))
    return step_folder(path, tag, "", holds)
