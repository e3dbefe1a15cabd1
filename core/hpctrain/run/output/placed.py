"""Which node a rank ran on: rank.sh begins each attempt in the rank's log with a line that says so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from hpctrain.errors import ConfigError
from hpctrain.run.disk.directory import RunDirectory

LONGEST = 512
"""Bytes of the line, with any name of a node."""
SIZES = 4 << 20
"""Bytes read of what says how long each log was: that of a hundred thousand ranks."""
_BEGAN = re.compile(r"hpctrain: rank \d+ on (?P<node>\S+), job \S+, attempt \d+\Z", re.ASCII)
_SIZE = re.compile(r"^(?P<size>[0-9]{1,18}) (?P<name>.+)$", re.M)


def earlier_sizes(directory: RunDirectory, step: str) -> dict[str, int]:
    """How long each log was when the last attempt began, as job.sh wrote it; none of what is not there."""
    try:
        with (directory.step(step) / "log-sizes").open("rb") as file:
            text = file.read(SIZES).decode("utf-8", "replace")
    except OSError:
        return {}
    return {match["name"]: int(match["size"]) for match in _SIZE.finditer(text)}


def rank_logs(directory: RunDirectory, step: str) -> list[Path]:
    """Those of a step's ranks, in their order."""
    return sorted(directory.logs.glob(f"{step}.rank*.log"), key=lambda path: (len(path.name), path.name))


def on_node(lines: Iterable[str], node: str) -> Iterator[str]:
    """The lines of a rank's log that the attempts on this node wrote."""
    is_here = False
    for line in lines:
        if began := _BEGAN.match(line):
            is_here = _is(began["node"], node)
        if is_here:
            yield line


def of_last_attempt(lines: list[str]) -> list[str]:
    """Those of the last lines of a rank's log that its last attempt wrote."""
    begins = [at for at, line in enumerate(lines) if _BEGAN.match(line)]
    return lines[begins[-1] :] if begins else lines


def logs_on_node(directory: RunDirectory, step: str, node: str, *, ever: bool) -> list[Path]:
    """The logs of the ranks that the last attempt ran there; `ever` those of every attempt.

    ConfigError names the nodes that there were, or says that the step's ranks have no logs of their own.
    """
    nodes: dict[Path, set[str]] = {}
    sizes = earlier_sizes(directory, step)
    for path in rank_logs(directory, step):
        nodes[path] = _every_node(path) if ever else _node_at(path, sizes.get(path.name, 0))
    paths = [path for path, names in nodes.items() if any(_is(name, node) for name in names)]
    if paths:
        return paths
    nodes_there = sorted(set().union(*nodes.values())) if nodes else []
    notes = (f"nodes: {' '.join(nodes_there)}",) if nodes_there else ("its ranks have no logs of their own",)
    hint = f"hpctrain logs {directory.title} {step}" + (f" --node {nodes_there[0]}" if nodes_there else "")
    message = f"no rank of {step} of {directory.title} ran on {node}"
    raise ConfigError.of("no-log", message, notes=notes, hint=hint)


def _node_at(path: Path, start: int) -> set[str]:
    """The node in the line that begins there; none of a rank that has not begun, or of an older run."""
    with path.open("rb") as file:
        file.seek(start)
        line = file.readline(LONGEST).decode("utf-8", "replace").rstrip("\n")
    began = _BEGAN.match(line)
    return {began["node"]} if began else set()


def _every_node(path: Path) -> set[str]:
    from hpctrain.run.output.growing import every_line  # the end of a log says it of most ranks

    return {began["node"] for line in every_line(path) if (began := _BEGAN.match(line))}


def _is(name: str, node: str) -> bool:
    """Whether they mean the same node: with its domain or without."""
    return name == node or name.partition(".")[0] == node
