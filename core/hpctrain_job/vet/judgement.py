"""Which nodes are unfit: one pure function of what each measured, beside its neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

SLOW = 2.0
"""So many times the median of its neighbours' time makes a node slow: frequencies differ by less."""
LITTLE = 0.9
"""Below this share of its neighbours' memory something holds it, or a module is gone."""
DRIFT = 60.0
"""Seconds that clocks may differ by, with the time in which a scheduler starts them all."""
LEAST_DISK = 2**20
"""Bytes that a node's own folder must have left."""


@dataclass(frozen=True)
class Terms:
    """What each node of this job has to have."""

    gpus: int
    """Of each node, where a program counts them."""


@dataclass(frozen=True)
class Fault:
    """Why a node is left out."""

    kind: str
    evidence: str


def judge(nodes: Sequence[str], reports: Mapping[str, Mapping[str, Any]], terms: Terms) -> dict[str, Fault]:
    """Node -> its first fault; `reports` are by the names in `nodes`."""
    peers = Peers.of(reports)
    faults: dict[str, Fault] = {}
    for node in nodes:
        report = reports.get(node)
        fault = next(_faults(report, peers, terms), None) if report else Fault("silent", "it left no answer")
        if fault is not None:
            faults[node] = fault
    return faults


@dataclass(frozen=True)
class Peers:
    """What most nodes have."""

    product: str
    seconds: float
    memory: float
    gpu_memory: float
    began: float

    @classmethod
    def of(cls, reports: Mapping[str, Mapping[str, Any]]) -> Peers:
        """Medians; of products the most frequent one."""
        products = [str(report["product"]) for report in reports.values()]
        gpus = [gpu["memory"] for report in reports.values() for gpu in report["gpus"]]
        return cls(
            product=max(products, key=products.count, default=""),
            seconds=median([report["seconds"] for report in reports.values()] or [0]),
            memory=median([report["memory"] for report in reports.values()] or [0]),
            gpu_memory=median(gpus or [0]),
            began=median([report["began"] for report in reports.values()] or [0]),
        )


def _faults(report: Mapping[str, Any], peers: Peers, terms: Terms) -> Iterator[Fault]:
    yield from _of_gpus(report, peers, terms)
    if report["product"] != peers.product:
        text = f"a matrix product is {report['product']}, elsewhere {peers.product}"
        yield Fault("wrong product", text)
    if report["seconds"] > SLOW * peers.seconds:
        text = f"a matrix product took {report['seconds']:.2f} s, elsewhere {peers.seconds:.2f} s"
        yield Fault("slow", text)
    if report["memory"] < LITTLE * peers.memory:
        text = f"{report['memory'] / 2**30:.0f} GiB, elsewhere {peers.memory / 2**30:.0f}"
        yield Fault("memory", text)
    if report["disk_fault"]:
        yield Fault("disk", report["disk_fault"])
    if abs(report["began"] - peers.began) > DRIFT:
        yield Fault("clock", f"it is {report['began'] - peers.began:+.0f} s from its neighbours' clocks")


def _of_gpus(report: Mapping[str, Any], peers: Peers, terms: Terms) -> Iterator[Fault]:
    gpus = report["gpus"]
    if report["gpu_fault"]:
        yield Fault("no GPUs", report["gpu_fault"])
    elif report["counted"] and len(gpus) < terms.gpus:
        yield Fault("GPUs missing", f"{len(gpus)} of {terms.gpus} answer")
    for number, gpu in enumerate(gpus):
        if gpu["memory"] < LITTLE * peers.gpu_memory:
            text = f"GPU {number} has {gpu['memory']} MiB, its neighbours {peers.gpu_memory:g}"
            yield Fault("memory of a GPU", text)
        if gpu["errors"] > 0:
            text = f"GPU {number} counts {gpu['errors']} uncorrected memory errors"
            yield Fault("errors of a GPU", text)
