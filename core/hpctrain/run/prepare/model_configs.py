"""The `config.json` of each model that a run names, wherever it can be read before the job.

A plan's numbers alone are made of them; what a run does, and its digest, never depend on them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hpctrain.model.run import Asset, RunSpec
from hpctrain_job.files import documents

START = "checkpoint.start"
"""The key of the model that the first attempt starts with."""
_NAME = "config.json"
_CHECKPOINT = re.compile(r"\{checkpoints\.([^{}]*)\}(/.*)?")


def model_configs(
    run: RunSpec, files: Mapping[str, Path], locked: Mapping[str, str], checkpoints: Path | None
) -> dict[str, Mapping[str, Any]]:
    """Asset -> its model's configuration; START -> that of the checkpoint where training starts.

    `files` are those of the run file, `locked` the texts in the lock, `checkpoints` the role on this machine.
    """
    configs: dict[str, Mapping[str, Any]] = {}
    for name, asset in run.assets.items():
        config = _parsed(locked[name]) if name in locked else _of_asset(asset, files)
        if config:
            configs[name] = config
    start = _read_first(_starts(run.checkpoint.start, checkpoints))
    return {**configs, START: start} if start else configs


def needs_checkpoints(run: RunSpec) -> bool:
    """Whether the run starts from another run's checkpoint."""
    return _CHECKPOINT.fullmatch(run.checkpoint.start) is not None


def _of_asset(asset: Asset, files: Mapping[str, Path]) -> Mapping[str, Any] | None:
    if not asset.path:
        return None
    folder = files.get(asset.path) or Path(asset.path).expanduser()
    return _read_first(iter([folder]))


def _starts(start: str, checkpoints: Path | None) -> Iterator[Path]:
    """The folders in which the model of the start may lie: its own, then those of its steps, newest first."""
    match = _CHECKPOINT.fullmatch(start)
    if match and checkpoints is not None and ".." not in start:
        folder = checkpoints / match[1] / (match[2] or "").strip("/")
    elif start.startswith("/"):
        folder = Path(start)
    else:
        return
    yield folder
    try:
        below = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    except OSError:
        return
    yield from below[:3]


def _read_first(folders: Iterator[Path]) -> Mapping[str, Any] | None:
    """The first that can be read; whatever else lies there is no business of a plan."""
    for folder in folders:
        file = folder / _NAME
        try:
            if file.is_file():
                return _mapping(documents.read(file))
        except (OSError, ValueError):
            continue
    return None


def _parsed(text: str) -> Mapping[str, Any] | None:
    try:
        return _mapping(documents.parse(text))
    except ValueError:
        return None


def _mapping(document: Any) -> Mapping[str, Any] | None:
    return document if isinstance(document, Mapping) else None
