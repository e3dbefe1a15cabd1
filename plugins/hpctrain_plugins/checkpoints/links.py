"""Links in a checkpoint: a stranger's may lead to private files, which would be copied and published."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hpctrain.plugin import IntegrityError


def check(folder: Path) -> None:
    """IntegrityError at the first link below `folder` that leads out of it, before anything is read.

    The hub's cache keeps its files as links to the `blobs` of the same model: those are its own.
    """
    home = folder.resolve()
    homes = [home, *_blobs(home)]
    for link in _links(folder):
        target = Path(os.path.realpath(link))
        if not any(target.is_relative_to(allowed) for allowed in homes):
            message = f"{link} is a link that leads out of its folder, to {target}"
            hint = f"cp --remove-destination {target} {link}      (if you know it and want it in the result)"
            raise IntegrityError.of("checkpoint-unsafe", message, where=str(link), hint=hint)


def _blobs(snapshot: Path) -> list[Path]:
    """Where the hub's cache keeps what `models--ORG--NAME/snapshots/COMMIT` holds."""
    model = snapshot.parent.parent
    if snapshot.parent.name == "snapshots" and model.name.startswith("models--"):
        return [model / "blobs"]
    return []


def _links(folder: Path) -> Iterator[Path]:
    """Every link below the folder; what they lead to is not entered."""
    for place, folders, files in os.walk(folder):
        for name in sorted((*folders, *files)):
            path = Path(place, name)
            if path.is_symlink():
                yield path
