"""Read what the nodes measured, write a finding for each that is unfit, print those that are left out.

Run by job.sh on its first node. `vetted.jsonl` in the step's folder has one finding a line, as `hangs.jsonl`
has verdicts; whoever keeps a list of nodes to stay away from reads it there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpctrain_job import bad_nodes
from hpctrain_job.exit_codes import TOO_FEW_NODES
from hpctrain_job.files import documents, shared
from hpctrain_job.vet import together
from hpctrain_job.vet.judgement import Fault, Terms, judge

FILE = "vetted.jsonl"
NUMBERS = ("began", "seconds", "memory")
_DAMAGED = (OSError, ValueError, TypeError, LookupError, AttributeError, OverflowError)
"""What half a file, or one that is none of ours, is read with."""


def reports(folder: Path, nodes: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Node -> what it left, by the scheduler's name for it where that is known; half a file is none."""
    by_node: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("[0-9]*.json")):
        with contextlib.suppress(*_DAMAGED):
            report = documents.read(path)
            numbers = {key: float(report[key]) for key in NUMBERS}
            texts = {key: str(report[key]) for key in ("host", "product", "gpu_fault", "disk_fault")}
            gpus = [{key: int(gpu[key]) for key in ("memory", "errors")} for gpu in report["gpus"]]
            rank = int(report["rank"])
            name = nodes[rank] if 0 <= rank < len(nodes) else texts["host"]
            by_node[name] = {**numbers, **texts, "gpus": gpus, "counted": report["counted"] is True}
    return by_node


def sweeps(folder: Path, nodes: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Node -> what it measured with others; half a file is none."""
    by_node: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("sweep-*.json")):
        with contextlib.suppress(*_DAMAGED):
            report = documents.read(path)
            rounds = [_round(row) for row in report["rounds"]]
            products = [_product(row) for row in report["products"]]
            if report["node"] in nodes:
                by_node[report["node"]] = {"products": products, "rounds": rounds}
    return by_node


def _round(row: Any) -> dict[str, Any]:
    operations = {
        str(name): {
            "right": result["right"] is True,
            "seconds": float(result["seconds"]),
            "bytes": int(result["bytes"]),
        }
        for name, result in row["operations"].items()
    }
    texts = {key: str(row[key]) for key in ("partner", "engine", "device", "fault")}
    return {**texts, "operations": operations}


def _product(row: Any) -> dict[str, Any]:
    product: dict[str, Any] = {key: str(row[key]) for key in ("fault", "device") if key in row}
    if "seconds" in row:
        product |= {"seconds": float(row["seconds"]), "right": row["right"] is True}
    return product


def write(step: Path, job: str, faults: dict[str, Fault]) -> None:
    """One line for each node."""
    for node, fault in faults.items():
        line = {"v": 1, "at": round(time.time(), 1), "job": job, "node": node}
        line |= {"kind": fault.kind, "evidence": fault.evidence}
        shared.append_line(step / FILE, json.dumps(line).encode())


def unfit(step: Path, job: str) -> tuple[str, ...]:
    """The nodes that were named in this job."""
    lines = [line for line in shared.objects(step / FILE) if line.get("job") == job and "node" in line]
    return tuple(dict.fromkeys(str(line["node"]) for line in lines))


def main(argv: Sequence[str] | None = None) -> int:
    """Judge; what is said to people goes to stderr."""
    parser = argparse.ArgumentParser(
        prog="hpctrain_job.vet.judge", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--step", type=Path, required=True, help="the step's folder")
    parser.add_argument("--job", required=True)
    parser.add_argument("--nodes", default="", help="the job's nodes as the scheduler calls them")
    parser.add_argument("--count", type=int, required=True, help="how many the job has")
    parser.add_argument("--needed", type=int, required=True, help="on how many it trains")
    parser.add_argument("--gpus", type=int, default=0, help="of each node")
    parser.add_argument("--together", action="store_true", help="by what they measured with others")
    options = parser.parse_args(argv)
    nodes = options.nodes.split()
    if options.together:
        faults = _together(options.step / "vet", nodes)
    else:
        measured = reports(options.step / "vet", nodes)
        faults = judge(nodes or tuple(measured), measured, Terms(gpus=options.gpus))
    if faults and len(faults) == options.count:
        node, fault = next(iter(faults.items()))
        why = f"{fault.kind} on {node}: {fault.evidence}"
        print(f"hpctrain: every node fails its vetting, so none is left out ({why})", file=sys.stderr)
        faults = {}
    write(options.step, options.job, faults)
    bad_nodes.remember(options.step, options.job, {n: (f.kind, f.evidence) for n, f in faults.items()})
    for node, fault in faults.items():
        print(f"hpctrain: {node} is unfit: {fault.kind}: {fault.evidence}", file=sys.stderr)
    fit = options.count - len(faults)
    if fit < options.needed:
        print(
            f"hpctrain: {fit} of {options.count} nodes are fit, {options.needed} are needed", file=sys.stderr
        )
        return TOO_FEW_NODES
    print(",".join(faults))
    return 0


def _together(folder: Path, nodes: Sequence[str]) -> dict[str, Fault]:
    """Of the sweep; what it ran over, and links that failed between fit nodes, is said."""
    measured = sweeps(folder, nodes)
    faults = together.judge(nodes, measured)
    for link in together.bad_links(measured, faults):
        print(f"hpctrain: {link}", file=sys.stderr)
    print(f"hpctrain: collectives in pairs over {together.engines(measured) or 'nothing'}", file=sys.stderr)
    return faults


if __name__ == "__main__":
    sys.exit(main())
