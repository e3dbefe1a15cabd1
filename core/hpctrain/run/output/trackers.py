"""Where a run's trainer logs for TensorBoard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

EVENTS = "events.out.tfevents."
"""How the names of its files begin."""
DEEPEST = 2
"""Folders below the run's own, and below that of its checkpoints; links are not followed."""


def tensorboard(*folders: Path) -> Path | None:
    """The first folder that holds everything of it: what `tensorboard --logdir` wants."""
    events = next((path for folder in folders for path in _event_folders(folder, DEEPEST)), None)
    if events is None:
        return None
    return events if events in folders or events.parent in folders else events.parent


def _event_folders(folder: Path, levels: int) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    if any(entry.name.startswith(EVENTS) for entry in entries):
        yield folder
    if levels:
        for entry in entries:
            if entry.is_dir() and not entry.is_symlink():
                yield from _event_folders(entry, levels - 1)
