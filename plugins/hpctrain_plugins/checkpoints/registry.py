"""The formats, ours and others': modules found by the entry points `hpctrain.checkpoints`."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, cast

from hpctrain.plugin import ConfigError
from hpctrain.toolbox import DISTRIBUTION, Entry, find_plugin, installed_names, load_plugin
from hpctrain_plugins.checkpoints import foreign
from hpctrain_plugins.checkpoints.formats.steps import step_number
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.output import Output
from hpctrain_plugins.checkpoints.tensors import Model

KIND = "checkpoints"


class Format(Protocol):
    """What the module behind an entry point offers; `plan` is missing when it only reads.

    A writer may have `CHOICES`: of the options `tp`, `pp`, `iteration`, `naming`, `layout`, `layer_keys` and
    `shard_bytes` those that it reads. The others are then refused, not ignored. With `OPTIMIZER` it writes
    what a training goes on from: readers are then asked for all that the optimizer holds
    (`options.optimizer`).
    """

    def detect(self, path: Path) -> bool:
        """Whether the folder looks like this format, judged by file names."""

    def read(self, path: Path, options: ConvertOptions) -> Model:
        """The checkpoint in the words of Hugging Face; reads headers, no weights."""

    def plan(self, model: Model, options: ConvertOptions) -> Output:
        """The files that say the same in this format."""


_added: dict[str, Entry] = {}


def add(name: str, module: str) -> None:
    """Know a format where nothing is installed: in a job, whose plan says which module it is."""
    _added[name] = Entry(KIND, name, module, "the job's zip", DISTRIBUTION)


def names() -> list[str]:
    """The names of the installed checkpoint formats."""
    return installed_names(KIND)


def load(name: str) -> Format:
    """Import the checkpoint format of this name."""
    return cast("Format", load_plugin(_added.get(name) or find_plugin(KIND, name)))


def detect(path: Path, among: tuple[str, ...] = ()) -> str:
    """The one format that this folder is in; of several the one `among` those that were meant."""
    if not path.exists():
        raise ConfigError.of("checkpoint-missing", f"{path} does not exist", where=str(path))
    matches = [name for name in names() if load(name).detect(path)]
    meant = [name for name in matches if name in among]
    if len(meant) == 1 or len(matches) == 1:
        return (meant or matches)[0]
    if path.is_file():
        message = f"{path} is a file, and a checkpoint is a folder"
        raise ConfigError.of("checkpoint-format", message, where=str(path), hint=str(path.absolute().parent))
    if matches:
        message = f"{path} holds checkpoints of several formats: {', '.join(matches)}"
        raise ConfigError.of("checkpoint-format", message, where=str(path), hint=f"--from {matches[0]}")
    kind = foreign.recognised(path) or _one_below(path)
    listed = ", ".join(names())
    complaint, hint = kind or (f"is not a checkpoint of a known format ({listed})", "")
    raise ConfigError.of("checkpoint-format", f"{path} {complaint}", where=str(path), hint=hint)


def _one_below(path: Path) -> tuple[str, str] | None:
    """Checkpoints in the folder, as trainers leave them: how many, and the newest."""
    steps = [
        (step_number(child.name) or 0, child)
        for child in path.iterdir()
        if child.is_dir() and any(load(name).detect(child) for name in names())
    ]
    if not steps:
        return None
    number = "a checkpoint" if len(steps) == 1 else f"{len(steps)} checkpoints"
    return f"holds {number} and is none itself", str(max(steps)[1])
