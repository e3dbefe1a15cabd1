"""Which nodes are unfit by what they measured with others: one pure function of all their rounds.

A node is to blame when every one of its pairs failed: its partners had others with whom all went well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from hpctrain_job.vet.judgement import SLOW, Fault

SLOWER = 4.0
"""So many times what good pairs take: neighbours at one switch are faster than nodes far from each other."""
LEAST = {"cpu": 0.5, "cuda": 0.0}
"""Seconds by which it must be later, too: processors do other work at the same time."""
OVER = "all_reduce"

Reports = Mapping[str, Mapping[str, Any]]


def judge(nodes: Sequence[str], reports: Reports) -> dict[str, Fault]:
    """Node -> its first fault; `reports` are by the names in `nodes`."""
    usual = _usual(reports)
    product = median([p["seconds"] for p in _products(reports.values())] or [0])
    faults: dict[str, Fault] = {}
    for node in nodes:
        report = reports.get(node)
        fault = (
            next(_faults(report, usual, product), None) if report else Fault("silent", "it left no answer")
        )
        if fault is not None:
            faults[node] = fault
    return faults


def bad_links(reports: Reports, faults: Mapping[str, Fault]) -> Iterator[str]:
    """Pairs that failed although neither node is to blame, as sentences."""
    usual = _usual(reports)
    for node, report in reports.items():
        for row in report["rounds"]:
            between = sorted((node, row["partner"]))
            if node == between[0] and not {*between} & faults.keys() and (fault := _of_round(row, usual)):
                yield f"between {between[0]} and {between[1]}: {fault.kind}: {fault.evidence}"


def engines(reports: Reports) -> str:
    """What the collectives ran over, as people call it; empty: none ran."""
    names = dict.fromkeys(row["engine"] for report in reports.values() for row in report["rounds"])
    return ", ".join(name for name in names if name)


def _faults(report: Mapping[str, Any], usual: float, product: float) -> Iterator[Fault]:
    for number, row in enumerate(report["products"]):
        subject = f"GPU {number}" if row.get("device") == "cuda" else "a processor"
        if row.get("fault"):
            yield Fault("no product", f"{subject}: {row['fault']}")
        elif row.get("right") is False:
            yield Fault("wrong product", f"{subject} multiplies matrices wrongly")
        elif row.get("device") == "cuda" and row["seconds"] > SLOW * product:
            text = f"{subject} takes {row['seconds']:.3f} s for a product, others {product:.3f} s"
            yield Fault("slow GPU", text)
    rounds = [_of_round(row, usual) for row in report["rounds"]]
    if rounds and all(rounds):
        partners = " ".join(row["partner"] for row in report["rounds"])
        first = rounds[0]
        assert first is not None
        yield Fault(first.kind, f"{first.evidence} (with {partners})")


def _of_round(row: Mapping[str, Any], usual: float) -> Fault | None:
    if row["fault"]:
        return Fault("no collective", row["fault"])
    wrong = [name for name, result in row["operations"].items() if not result["right"]]
    if wrong:
        return Fault("wrong collective", f"{', '.join(wrong)}: other values than were sent")
    seconds = _seconds(row)
    if seconds > SLOWER * usual and seconds - usual > LEAST.get(row["device"], 0):
        return Fault("slow collective", f"{OVER} takes {seconds:.3f} s, elsewhere {usual:.3f} s")
    return None


def _usual(reports: Reports) -> float:
    """What a good pair takes. A bad node of four has half of all pairs, so the median is none."""
    rows = (row for report in reports.values() for row in report["rounds"] if not row["fault"])
    times = sorted(seconds for row in rows if (seconds := _seconds(row)))
    return times[len(times) // 4] if times else 0.0


def _seconds(row: Mapping[str, Any]) -> float:
    """Of the largest all-reduce."""
    times = [result["seconds"] for name, result in row["operations"].items() if name.startswith(OVER)]
    return max(times, default=0.0)


def _products(reports: Any) -> Iterator[Mapping[str, Any]]:
    rows = (row for report in reports for row in report["products"])
    return (row for row in rows if row.get("device") == "cuda" and "seconds" in row)
