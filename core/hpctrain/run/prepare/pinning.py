"""Pin what a run asks for: every plugin resolves its names, and the lock beside the run file keeps them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hpctrain.errors import ConfigError
from hpctrain.hooks.manager import Hooks
from hpctrain.lock import REBUILD, Lock, path_of, request_hash, text
from hpctrain.model.cluster import Cluster
from hpctrain.model.plan import Binding
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Pin
from hpctrain.run.system import files
from hpctrain.run.system.tools import Tools
from hpctrain.runfile.reading.find import is_run_directory


def resolve(
    hooks: Hooks, run: RunSpec, cluster: Cluster, binding: Binding, lock: Lock, tools: Tools
) -> tuple[Pin, ...]:
    """The pins of every plugin as of now, and from the earlier lock how often packages were rebuilt."""
    answers = hooks.call("pin", run=run, cluster=cluster, binding=binding, pins=lock.pins, tools=tools)
    rebuilds = (pin for pin in lock.pins if pin.kind == REBUILD)
    return tuple(dict.fromkeys([*(pin for answer in answers for pin in answer), *rebuilds]))


def write(run_file: Path, cluster: str, run: RunSpec, pins: Iterable[Pin]) -> None:
    """Write `pins` as those of this cluster; other clusters keep theirs.

    ConfigError in the directory of a run: what it was made of stays as it was.
    """
    if is_run_directory(run_file.parent):
        message = f"{run_file} is the record of a run, and has no pins for what is asked of {cluster} now"
        raise ConfigError.of("run-record", message, hint=f"cp {run_file} again.toml")
    files.write(path_of(run_file), text(run_file, {cluster: (request_hash(run), pins)}))
