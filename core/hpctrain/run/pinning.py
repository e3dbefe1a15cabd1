"""Pin what a run asks for: every plugin resolves its names, and the lock beside the run file keeps them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hpctrain.hooks.manager import Hooks
from hpctrain.lock import REBUILD, Lock, path_of, request_hash, text
from hpctrain.model.cluster import Cluster
from hpctrain.model.plan import Binding
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Pin
from hpctrain.run import files
from hpctrain.run.tools import Tools


def resolve(
    hooks: Hooks, run: RunSpec, cluster: Cluster, binding: Binding, lock: Lock, tools: Tools
) -> tuple[Pin, ...]:
    """The pins of every plugin as of now, and from the earlier lock how often packages were rebuilt."""
    answers = hooks.call("pin", run=run, cluster=cluster, binding=binding, pins=lock.pins, tools=tools)
    rebuilds = (pin for pin in lock.pins if pin.kind == REBUILD)
    return tuple(dict.fromkeys([*(pin for answer in answers for pin in answer), *rebuilds]))


def write(run_file: Path, cluster: str, run: RunSpec, pins: Iterable[Pin]) -> None:
    """Write `pins` as those of this cluster; other clusters keep theirs."""
    files.write(path_of(run_file), text(run_file, {cluster: (request_hash(run), pins)}))
