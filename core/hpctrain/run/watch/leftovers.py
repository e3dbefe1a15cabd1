"""Tokens that jobs left on the disk: of a run that is over they go, of one that is gone somebody is told."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from hpctrain.errors import HpctrainError
from hpctrain.run.disk import secrets
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.registry import Registry
from hpctrain.run.watch.fleet import opened


def remove_tokens(state: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Delete the tokens of steps that are over; each run with these steps.

    Tokens of a step that goes on stay, and so do those of which nobody can say whether it does.
    """
    names = {folder.name for folder in secrets.folders(state)}
    runs = _runs(environ) if names else {}
    for live in opened((run for name, run in runs.items() if name in names), environ):
        with contextlib.suppress(HpctrainError):  # its scheduler is silent
            if steps := live.secrets_left():
                live.remove_secrets()
                yield live.directory.title, steps


def tokens_of_nobody(state: Path, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Folders with tokens of runs that are in no list, or whose directory is gone: nobody knows whether a job
    reads them."""
    folders = secrets.folders(state)
    names = _runs(environ) if folders else {}
    return tuple(folder for folder in folders if folder.name not in names)


def _runs(environ: Mapping[str, str]) -> dict[str, RunDirectory]:
    """The runs of the list by the names of their folders of tokens; one whose name is damaged has none."""
    runs = {}
    for entry in Registry.of(environ).entries():
        with contextlib.suppress(HpctrainError):
            if entry.run.exists():
                runs[secrets.folder_name(entry.run.name, entry.run)] = entry.run
    return runs
