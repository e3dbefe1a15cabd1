"""How long until every rank has imported its libraries: a prediction from counts, for three ways to lay
the environment out. An order of magnitude, calibrated on no parallel file system.

The counts are of one real import (torch, transformers, trl with a trainer, peft; CPU build, strace); the
rates of a metadata server are published mdtest figures. A CUDA build is larger by LARGER.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from attrs import frozen

COUNTED = (
    "counted 2026-11-20: torch 2.13, transformers 5.23, trl 1.16, peft 0.21; rates: Lustre mdtest, published"
)
PATHS, OPENS = 10_400, 8_400
"""Different paths that an import touches, and files that each process opens."""
READ_GB, IMAGE_GB = 0.22, 0.415
"""What an import reads of an image, and how large the image is."""
LARGER = 5
"""How much larger a build for GPUs is than the one that was counted."""
RATE = 100_000
"""Metadata operations a second that a shared file system answers."""
TARGET_GBPS, WIRE_GBPS, FANOUT = 5, 2, 16
"""One storage target, one node's share of a broadcast, and the nodes that each one feeds."""
IMPORT_S = 6
"""The processor's own work, the same for all three."""
SLOW_S, REFUSED_S = 30, 300
NODES = (1, 16, 64, 256, 1024, 9400)

SHARED, MOUNTED, BROADCAST = "shared", "image", "broadcast"
MEANS = {
    SHARED: "a prefix on the shared file system",
    MOUNTED: "one image, mounted from there",
    BROADCAST: "one image, broadcast to each node's disk",
}


@frozen(kw_only=True)
class Curve:
    """Seconds from the start of the ranks to the end of their imports, and what it asks of the disk."""

    way: str
    seconds: float
    operations: int = 0


def curves(nodes: int, ranks_per_node: int) -> tuple[Curve, Curve, Curve]:
    """The prediction of each way for this many nodes."""
    operations = nodes * (PATHS + 2 * OPENS * ranks_per_node)
    sent = _broadcast(nodes)
    return (
        Curve(way=SHARED, seconds=IMPORT_S + operations / RATE, operations=operations),
        Curve(way=MOUNTED, seconds=IMPORT_S + nodes * LARGER * READ_GB / TARGET_GBPS, operations=nodes),
        Curve(way=BROADCAST, seconds=IMPORT_S + sent, operations=1),
    )


def _broadcast(nodes: int) -> float:
    depth = max(1, math.ceil(math.log(nodes, FANOUT) - 1e-9))
    return depth * min(FANOUT, nodes) * LARGER * IMAGE_GB / WIRE_GBPS  # each level waits for the whole image


def broadcast_pays(nodes: int) -> bool:
    """Whether sending one archive from node to node is quicker than all of them reading all of it."""
    return _broadcast(nodes) < nodes * LARGER * IMAGE_GB / TARGET_GBPS


def best(nodes: int, ranks_per_node: int, *, node_disk: bool) -> str:
    """The way that `pack = "auto"` takes: the simplest while it is quick, then the fastest there is."""
    shared, mounted, broadcast = curves(nodes, ranks_per_node)
    if shared.seconds <= SLOW_S:
        return SHARED
    if node_disk and broadcast.seconds < mounted.seconds:
        return BROADCAST
    return MOUNTED


def rows(nodes: int, ranks_per_node: int, *, node_disk: bool) -> Iterator[tuple[str, str]]:
    """The page of `--explain startup`: the inputs, the three curves, what was chosen and how sure it is."""
    yield "asked", f"{nodes} nodes, {ranks_per_node} ranks each"
    yield "files", f"{PATHS:,} paths a node, {OPENS:,} opened by each rank; image {LARGER * IMAGE_GB:.1f} GB"
    yield "disk", f"{RATE:,} operations/s for all its users, {TARGET_GBPS} GB/s a target (assumed)"
    for curve in curves(nodes, ranks_per_node):
        ops = f"{curve.operations:,} operations" if curve.operations > 1 else "one copy"
        yield curve.way, f"{_time(curve.seconds)}   {MEANS[curve.way]}; {ops}"
    for way in (SHARED, MOUNTED, BROADCAST):
        yield f"{way} by nodes", _curve(way, ranks_per_node)
    missing = "" if node_disk else "; nodes have no disk of their own"
    yield "shortest", f"{best(nodes, ranks_per_node, node_disk=node_disk)}{missing}"
    yield "sure", "an order of magnitude, predicted and measured on no cluster"
    yield "fact", COUNTED


def _curve(way: str, ranks: int) -> str:
    by_nodes = {n: next(c for c in curves(n, ranks) if c.way == way) for n in NODES}
    return "  ".join(f"{n:,}: {_time(c.seconds)}" for n, c in by_nodes.items())


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f}s"
    return f"{seconds / 60:.0f}m" if seconds < 7200 else f"{seconds / 3600:.1f}h"


def entry(nodes: int, ranks_per_node: int, *, node_disk: bool) -> dict[str, Any]:
    """The same as `plan --explain` shows it and `--json` gives it."""
    pairs = rows(nodes, ranks_per_node, node_disk=node_disk)
    return {"kind": "about", "name": "startup   predicted", "rows": [list(row) for row in pairs]}
