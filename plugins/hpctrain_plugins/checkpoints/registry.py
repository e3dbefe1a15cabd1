"""The formats, ours and others': modules found by the entry points `hpctrain.checkpoints`."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, cast

from hpctrain.errors import ConfigError
from hpctrain.hooks import load as plugins
from hpctrain.hooks import scan
from hpctrain.versions import DISTRIBUTION
from hpctrain_plugins.checkpoints.layout import Layout
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.tensors import Model

KIND = "checkpoints"


class Format(Protocol):
    """What the module behind an entry point offers; `plan` is missing when it only reads.

    A writer may have `CHOICES`: of the options `tp`, `pp`, `iteration`, `naming`, `layout` and `shard_bytes`
    those that it reads. The others are then refused, not ignored.
    """

    def detect(self, path: Path) -> bool:
        """Whether the folder looks like this format, judged by file names."""

    def read(self, path: Path, options: ConvertOptions) -> Model:
        """The checkpoint in the words of Hugging Face; reads headers, no weights."""

    def plan(self, model: Model, options: ConvertOptions) -> Layout:
        """The files that say the same in this format."""


_added: dict[str, scan.Entry] = {}


def add(name: str, module: str) -> None:
    """Know a format where nothing is installed: in a job, whose plan says which module it is."""
    _added[name] = scan.Entry(KIND, name, module, "the job's zip", DISTRIBUTION)


def names() -> list[str]:
    """The formats that are installed."""
    return scan.names(KIND)


def load(name: str) -> Format:
    """The format of this name."""
    return cast("Format", plugins.load(_added.get(name) or plugins.find(KIND, name)))


def detect(path: Path) -> str:
    """The one format that this folder is in."""
    if not path.exists():
        raise ConfigError.of("checkpoint-missing", f"{path} does not exist", where=str(path))
    found = [name for name in names() if load(name).detect(path)]
    if len(found) == 1:
        return found[0]
    if path.is_file():
        said = f"{path} is a file, and a checkpoint is a folder"
        raise ConfigError.of("checkpoint-format", said, where=str(path), hint=str(path.absolute().parent))
    listed = ", ".join(found or names())
    said = f"{path} holds checkpoints of several formats: {listed}"
    if not found:
        said = f"{path} is no checkpoint of a known format ({listed})"
    hint = f"--from {found[0]}" if found else ""
    raise ConfigError.of("checkpoint-format", said, where=str(path), hint=hint)
