"""Follows the ranks' logs in the first minutes, one rank of each node, and says which network they took.

`fabric` in the step's folder has one line, `proven: …` once every node has shown it, or `refused: NODE: …`;
`fabric.json` what each node said. On a slow network the job is told to end, or only people are told of it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hpctrain_job.fabric.lines import NodeNetwork, differing, summary

TICK = 0.5
LIMIT = 900.0
"""Seconds from the first line on: the first step of a large training is slow, and channels come with it."""
CHANNELS = 60.0
"""Seconds that are given to channels once every node has shown its network."""
BLOCK = 2**20
_PLACED = re.compile(r"^hpctrain: rank \d+ on (\S+), job ")


class _Log:
    """One rank's log from where this attempt begins."""

    def __init__(self, path: Path, start: int) -> None:
        self._path = path
        self._at = start
        self._rest = b""

    def lines(self) -> list[str]:
        """What was added, in whole lines; a log that is not there yet has none."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                data = file.read(BLOCK)
        except OSError:
            return []
        self._at += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [line.decode(errors="replace") for line in whole]


class Watch:
    """All nodes of one step."""

    def __init__(self, folder: Path, step: str, nodes: int, per_node: int, starts: dict[str, int]) -> None:
        names = [f"{step}.rank{node * per_node}.log" for node in range(nodes)]
        self._logs = [_Log(folder / "logs" / name, starts.get(name, 0)) for name in names]
        self._networks = [NodeNetwork() for _ in names]
        self._names = [f"node {number}" for number in range(nodes)]

    @property
    def nodes(self) -> dict[str, NodeNetwork]:
        return {
            name if self._names.count(name) == 1 else f"{name}:{number}": network
            for number, (name, network) in enumerate(zip(self._names, self._networks, strict=True))
        }

    def read(self, proof: re.Pattern[str], refuse: re.Pattern[str]) -> bool:
        """Take in what was added; whether there was anything."""
        is_new = False
        for number, log in enumerate(self._logs):
            for line in log.lines():
                is_new = True
                if match := _PLACED.match(line):
                    self._names[number] = match[1]
                self._networks[number].read(line, proof, refuse)
        return is_new


def starts(step: Path) -> dict[str, int]:
    """How long each log was when the attempt began."""
    try:
        rows = [line.split(None, 1) for line in (step / "log-sizes").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return {}
    return {row[1]: int(row[0]) for row in rows if len(row) == 2 and row[0].isdecimal()}


def main(argv: Sequence[str] | None = None) -> None:
    """Until every node has shown its channels, one shows a slow network, or the time is over."""
    parser = argparse.ArgumentParser(prog="hpctrain_job.fabric.watch")
    parser.add_argument("--step", required=True)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--per-node", type=int, required=True)
    parser.add_argument("--proof", required=True)
    parser.add_argument("--refuse", required=True)
    parser.add_argument("--on-slow", choices=("stop", "say"), default="stop")
    parser.add_argument("--parent", type=int, required=True, help="the job, which is told to end")
    options = parser.parse_args(argv)
    folder = Path.cwd() / "steps" / options.step
    watch = Watch(Path.cwd(), options.step, options.nodes, options.per_node, starts(folder))
    proof, refuse = re.compile(options.proof), re.compile(options.refuse)
    first = proven = None
    while _lives(options.parent):
        now = time.monotonic()
        if watch.read(proof, refuse):
            first = first or now
        nodes = watch.nodes
        slow = next(((name, network) for name, network in nodes.items() if network.refused), None)
        if slow is not None:
            _refuse(folder, options, *slow, nodes)
            return
        if proven is None and all(network.proven for network in nodes.values()):
            proven = now
            _write(folder / "fabric", f"proven: {next(iter(nodes.values())).proven}\n")
        is_over = first is not None and now - first > LIMIT
        are_all = proven is not None and all(network.over_network for network in nodes.values())
        if are_all or is_over or (proven is not None and now - proven > CHANNELS):
            break
        time.sleep(TICK)
    if first is not None:
        _tell(folder, watch.nodes)


def _refuse(
    folder: Path, options: argparse.Namespace, name: str, network: NodeNetwork, nodes: dict[str, NodeNetwork]
) -> None:
    _document(folder, nodes)
    does_stop = options.on_slow == "stop"
    _write(folder / "fabric", f"{'refused' if does_stop else 'slow'}: {name}: {network.refused}\n")
    begin = "hpctrain: stopped, " if does_stop else "hpctrain: "
    print(f"{begin}the nodes do not talk over the fast network: {name}: {network.refused}", file=sys.stderr)
    if does_stop:
        os.kill(options.parent, signal.SIGTERM)


def _tell(folder: Path, nodes: dict[str, NodeNetwork]) -> None:
    _document(folder, nodes)
    print(f"hpctrain: network: {summary(nodes)}", file=sys.stderr)
    for sentence in differing(nodes):
        print(f"hpctrain: network: {sentence}", file=sys.stderr)


def _document(folder: Path, nodes: dict[str, NodeNetwork]) -> None:
    document = {"v": 1, "job": os.environ.get("HPC_JOB", ""), "attempt": os.environ.get("HPC_ATTEMPT", "")}
    rows = {name: network.document() for name, network in nodes.items()}
    _write(folder / "fabric.json", json.dumps({**document, "nodes": rows}, indent=1) + "\n")


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
