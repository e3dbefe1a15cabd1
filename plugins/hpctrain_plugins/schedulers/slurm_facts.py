"""Facts of a cluster from what Slurm prints: `sinfo`, `scontrol show partition`, `node` and `config`.

https://slurm.schedmd.com/scontrol.html and https://slurm.schedmd.com/sinfo.html say what the words mean.
Records of scontrol are `Key=Value` words, one record from `PartitionName=` or `NodeName=` to the next.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from hpctrain.plugin import Duration, Reading

NAME = "slurm"
_RECORD = re.compile(r"^(?:PartitionName|NodeName)=", re.MULTILINE)
_WORD = re.compile(r"(?:^|\s)(\w+)=(\S*)")
_GPU = re.compile(r"\bgpu(?::(?P<model>[A-Za-z][\w.-]*))?:(?P<count>\d+)")
_SETTING = re.compile(r"^(\w+)\s+= (.*?)\s*$", re.MULTILINE)
_SINFO = re.compile(
    r"^(?P<name>[\w.-]+)\*?\s+\S+\s+(?P<time>[\d:-]+|infinite)\s+(?P<nodes>\d+)\s", re.MULTILINE
)
_OF_SINFO = re.compile(r"^PARTITION\s+AVAIL\s+TIMELIMIT\s+NODES\b", re.MULTILINE)
_CUDA = re.compile(r"(?:a|h|b|v|l|gh|gb|p|t|rtx)[\d_]|nvidia|tesla", re.IGNORECASE)
_ROCM = re.compile(r"mi\d|gfx|amd|instinct", re.IGNORECASE)

Record = Mapping[str, str]


def printed(outputs: Mapping[str, str]) -> Iterator[Reading]:
    """What the files say; where two tell of one fact, scontrol's comes before sinfo's."""
    nodes = [(file, record) for file, text in outputs.items() for record in records(text, "NodeName")]
    yield from _hardware(nodes)
    for file, text in outputs.items():
        for record in sorted(records(text, "PartitionName"), key=lambda r: r.get("Default") != "YES"):
            yield from _partition(file, record, [node for _, node in nodes])
    for file, text in outputs.items():
        yield from _sinfo(file, text)
        yield from _config(file, text)


def records(text: str, first: str) -> list[Record]:
    starts = [match.start() for match in _RECORD.finditer(text)]
    parts = (text[a:b] for a, b in zip(starts, [*starts, len(text)][1:], strict=True))
    return [dict(_WORD.findall(part)) for part in parts if part.startswith(first)]


def _hardware(nodes: list[tuple[str, Record]]) -> Iterator[Reading]:
    """The kind of node that there is most of, among those with the most GPUs."""
    if not nodes:
        return
    most = max(_gpus(record)[1] for _, record in nodes)
    kinds = Counter(_kind(record) for _, record in nodes if _gpus(record)[1] == most)
    kind = kinds.most_common(1)[0][0]
    file, record = next((file, record) for file, record in nodes if _kind(record) == kind)
    model, gpus = _gpus(record)
    vendor = "cuda" if _CUDA.match(model) else "rocm" if _ROCM.match(model) else None
    facts: dict[str, Any] = {**_size(record), "nodes": kinds[kind]}
    named = {"gpus_per_node": gpus or None, "gpu": model or None, "gpu_kind": vendor}
    yield from _readings(file, "hardware", "", {**facts, **named})
    yield from _readings(file, "", "", {"arch": record.get("Arch")})
    if gpus and (cores := facts["cores_per_node"]):
        yield from _readings(file, "launch", "", {"cpus_per_gpu": cores // gpus})


def _kind(record: Record) -> tuple[str, ...]:
    return tuple(record.get(key, "") for key in ("Gres", "CPUTot", "RealMemory", "Arch"))


def _size(record: Record) -> dict[str, int | None]:
    """A node's cores, as many as jobs may use, and its memory."""
    cores = number(record.get("CPUEfctv")) or number(record.get("CPUTot"))
    return {"cores_per_node": cores, "memory_gb": (number(record.get("RealMemory")) or 0) // 1024 or None}


def _gpus(record: Record) -> tuple[str, int]:
    """What a node's GPUs are called, and how many it has."""
    gpus = list(_GPU.finditer(record.get("Gres", "")))
    return (gpus[0]["model"] or "", sum(int(match["count"]) for match in gpus)) if gpus else ("", 0)


def _partition(file: str, record: Record, nodes: list[Record]) -> Iterator[Reading]:
    """A partition that users may ask for."""
    name = record["PartitionName"]
    if record.get("Hidden") == "YES" or record.get("RootOnly") == "YES" or record.get("State") != "UP":
        return
    least = number(record.get("MinNodes")) or 0
    limits: dict[str, Any] = {
        "min_nodes": least if least > 1 else None,
        "max_nodes": number(record.get("MaxNodes")) or number(record.get("TotalNodes")),
        "max_time": duration(record.get("MaxTime", "")),
        "note": _closed(record),
    }
    members = [node for node in nodes if name in node.get("Partitions", "").split(",")]
    if members and any(_gpus(node)[1] for node in nodes) and not any(_gpus(node)[1] for node in members):
        size = {key: value for key, value in _size(members[0]).items() if value}
        limits |= {
            "auto": False,
            "hardware": {"gpu": "none", "gpus_per_node": 0, **size, "nodes": len(members)},
        }
    yield from _queue(file, name, limits)


def _closed(record: Record) -> str | None:
    """Who alone may use a partition."""
    keys = ("AllowGroups", "AllowAccounts", "AllowQos")
    some = [f"{key}={record[key]}" for key in keys if record.get(key, "ALL") not in ("ALL", "N/A")]
    return ", ".join(some) or None


def _sinfo(file: str, text: str) -> Iterator[Reading]:
    """Partitions by their lines, one for each state that nodes are in."""
    if not _OF_SINFO.search(text):
        return
    rows = list(_SINFO.finditer(text))
    for name, time in {row["name"]: row["time"] for row in rows}.items():
        nodes = sum(int(row["nodes"]) for row in rows if row["name"] == name)
        yield from _queue(file, name, {"max_nodes": nodes, "max_time": duration(time)})


def _queue(file: str, name: str, limits: Mapping[str, Any]) -> Iterator[Reading]:
    yield from _readings(file, "queue", name, {"ask": {NAME: [f"--partition={name}"]}, **limits})
    command = {"command": f"scontrol show partition {name}"}
    yield from _readings(file, "verify", f"the limits of {name}", command)


def _config(file: str, text: str) -> Iterator[Reading]:
    if not text.startswith("Configuration data as of"):
        return
    settings = dict(_SETTING.findall(text))
    yield from _readings(file, "", "", {"title": settings.get("ClusterName")})
    enforced = "associations" in settings.get("AccountingStorageEnforce", "")
    yield from _readings(file, "policy", "", {"account": "required" if enforced else "optional"})


def _readings(file: str, table: str, row: str, facts: Mapping[str, Any]) -> Iterator[Reading]:
    for key, value in facts.items():
        if value is not None:
            yield Reading(table=table, row=row, key=key, value=value, file=file)


def number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def duration(text: str) -> str | None:
    """`4-00:00:00`, or `30:00` for minutes and seconds, as people write it; None where there is no limit."""
    try:
        return Duration.parse(f"0:{text}" if text.count(":") == 1 else text).short
    except ValueError:
        return None
