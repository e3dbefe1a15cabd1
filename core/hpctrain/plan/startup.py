"""How long until the first step, with three ways to lay the environment out: a prediction from counts.

Reading and mounting are reckoned: the counts are of one real import (torch, transformers, trl with a trainer,
peft; CPU build, strace), the rates of a metadata server published mdtest figures; a CUDA build is larger by
LARGER. A broadcast and the first step follow ten public measurements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from attrs import frozen

from hpctrain.model.plan import Surround
from hpctrain.model.words import Cmd, Line, Word
from hpctrain.plan.words import word_text

COUNTED = (
    "counted 2026-11-20: torch 2.13, transformers 5.23, trl 1.16, peft 0.21; rates: Lustre mdtest, published"
)
MEASURED = (
    "measured by others on Aurora, 8 to 4,096 nodes, 2026-05-01: "
    "https://github.com/saforem2/ezpz docs/cli/yeet.md, commit 0275cb1b"
)
PATHS, OPENS = 10_400, 8_400
"""Different paths that an import touches, and files that each process opens."""
READ_GB, IMAGE_GB = 0.22, 0.415
"""What an import reads of an image, and how large the image is."""
LARGER = 5
"""How much larger a build for GPUs is than the one that was counted."""
RATE = 100_000
"""Metadata operations a second that a shared file system answers."""
TARGET_GBPS = 5
"""One storage target."""
SENT_GB, SENT_S, SENT_NODE_S = 8.3, 88.0, 0.161
"""What was broadcast and unpacked on Aurora: seconds for one node, and for each node more."""
STEP_S, STEP_RANK_S = 27.0, 0.0032
"""There, from the start of the ranks to the first step: seconds for one rank, and for each rank more
(12 a node), which is their meeting."""
SLOW_S = 24
"""How long laying out may take before another way is looked for."""
CLOSE, ROUGH = 1.5, 3.0
"""How far a prediction may be off, up or down: all ten measurements are within CLOSE; nobody has measured
the other two ways."""
NODES = (1, 16, 64, 256, 1024, 9400)

SHARED, MOUNTED, BROADCAST = "shared", "image", "broadcast"
MEANS = {
    SHARED: "a prefix on the shared file system",
    MOUNTED: "one image, mounted from there",
    BROADCAST: "one archive, sent to each node's own disk",
}
IMAGES = (".sif", ".sqsh", ".squashfs", ".img")
"""How files are called that are mounted whole."""
ARCHIVE = ".tar"
"""How one is called that each node unpacks."""


@frozen(kw_only=True)
class Curve:
    """Seconds until the first step, and what they ask of the disk."""

    way: str
    layout_s: float
    """Until every node has read the environment, or has its copy."""
    step_s: float
    """From there to the first step: imports, the meeting of the ranks, the step."""
    off: float
    """How many times as long it may take, or as short."""
    operations: int = 0

    @property
    def seconds(self) -> float:
        """Seconds until the first step."""
        return self.layout_s + self.step_s

    @property
    def range_s(self) -> tuple[float, float]:
        """The least and the most that it may be."""
        return self.seconds / self.off, self.seconds * self.off


def curves(nodes: int, ranks_per_node: int) -> tuple[Curve, Curve, Curve]:
    """The prediction of each way for this many nodes."""
    operations = nodes * (PATHS + 2 * OPENS * ranks_per_node)
    step_s, sent_s = first_step(nodes * ranks_per_node), broadcast(nodes, LARGER * IMAGE_GB)
    read_s = nodes * LARGER * READ_GB / TARGET_GBPS
    return (
        Curve(way=SHARED, layout_s=operations / RATE, step_s=step_s, off=ROUGH, operations=operations),
        Curve(way=MOUNTED, layout_s=read_s, step_s=step_s, off=ROUGH, operations=nodes),
        Curve(way=BROADCAST, layout_s=sent_s, step_s=step_s, off=CLOSE, operations=1),
    )


def way(around: Surround) -> str:
    """How the environment of a step is laid out, by what is put around its ranks."""
    node, job = _words(around.node), (*_words(around.job), *around.wrap)
    bodies = (word for file in around.files for word in file.body)
    if any(word_text(word).endswith(ARCHIVE) for word in node):
        return BROADCAST
    mounted = any(word_text(word).endswith(IMAGES) for word in (*job, *bodies))
    return MOUNTED if mounted or around.wrap else SHARED


def _words(lines: Iterable[Line]) -> tuple[Word, ...]:
    return tuple(word for command in lines if isinstance(command, Cmd) for word in command.argv)


def broadcast(nodes: int, gigabytes: float) -> float:
    """Seconds until each node has unpacked its own copy."""
    return gigabytes / SENT_GB * (SENT_S + SENT_NODE_S * nodes)


def first_step(ranks: int) -> float:
    """Seconds from the start of the ranks to the first step, once every node has its environment."""
    return STEP_S + STEP_RANK_S * ranks


def broadcast_pays(nodes: int) -> bool:
    """Whether sending one archive from node to node is quicker than all of them reading all of it."""
    return broadcast(nodes, LARGER * IMAGE_GB) < nodes * LARGER * IMAGE_GB / TARGET_GBPS


def best(nodes: int, ranks_per_node: int, *, node_disk: bool) -> str:
    """The way that `pack = "auto"` takes: the simplest while it is quick, then the fastest there is."""
    shared, mounted, sent = curves(nodes, ranks_per_node)
    if shared.layout_s <= SLOW_S:
        return SHARED
    if node_disk and sent.layout_s < mounted.layout_s:
        return BROADCAST
    return MOUNTED


def rows(nodes: int, ranks_per_node: int, taken: str, *, node_disk: bool) -> Iterator[tuple[str, str]]:
    """The page of `--explain startup`: the inputs, the three curves, what was chosen and how sure it is."""
    yield "asked", f"{nodes} nodes, {ranks_per_node} ranks each"
    yield "this plan", f"{taken}: {MEANS[taken]}"
    yield "files", f"{PATHS:,} paths a node, {OPENS:,} opened by each rank; image {LARGER * IMAGE_GB:.1f} GB"
    yield "disk", f"{RATE:,} operations/s for all its users, {TARGET_GBPS} GB/s a target (assumed)"
    for curve in curves(nodes, ranks_per_node):
        ops = f"{curve.operations:,} operations" if curve.operations > 1 else "one copy"
        yield curve.way, f"{_time(curve.seconds)} ({spread(curve)})   {MEANS[curve.way]}; {ops}"
    for way in (SHARED, MOUNTED, BROADCAST):
        yield f"{way} by nodes", _curve(way, ranks_per_node)
    missing = "" if node_disk else "; nodes have no disk of their own"
    yield "shortest", f"{best(nodes, ranks_per_node, node_disk=node_disk)}{missing}"
    yield (
        "sure",
        f"ten measurements of a {BROADCAST} are within {CLOSE:g} times; else within {ROUGH:g}, a guess",
    )
    yield "fact", COUNTED
    yield "fact", MEASURED


def _curve(way: str, ranks: int) -> str:
    by_nodes = {n: next(c for c in curves(n, ranks) if c.way == way) for n in NODES}
    return "  ".join(f"{n:,}: {_time(c.seconds)}" for n, c in by_nodes.items())


def spread(curve: Curve) -> str:
    """The range of a prediction: `20s to 3m`."""
    least, most = curve.range_s
    return f"{_time(least)} to {_time(most)}"


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f}s"
    return f"{seconds / 60:.0f}m" if seconds < 7200 else f"{seconds / 3600:.1f}h"


def entry(nodes: int, ranks_per_node: int, taken: str, *, node_disk: bool) -> dict[str, Any]:
    """The same as `plan --explain` shows it and `--json` gives it."""
    pairs = rows(nodes, ranks_per_node, taken, node_disk=node_disk)
    return {"kind": "about", "name": "startup   predicted", "rows": [list(row) for row in pairs]}
