"""What Slurm says today of a cluster that has facts already: its version, partitions, nodes, QoS, accounts.

https://slurm.schedmd.com/sacctmgr.html: MaxSubmitPU counts all jobs of a user, MaxTRES is of one job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpctrain.plugin import Cluster, Reading
from hpctrain_plugins.schedulers.slurm_facts import NAME, duration, number, records

VERSION, PARTITIONS, NODES = "version of Slurm", "partitions", "nodes"
QOS, ACCOUNTS = "limits of the QoS", "your accounts"
_VERSION = re.compile(r"^slurm\S* (?P<version>\d+\.\d+\S*)", re.MULTILINE)
_GPUS = re.compile(r"\bgpu(?::[A-Za-z][\w.-]*)?:(\d+)")
_NODES = re.compile(r"\bnode=(\d+)")
_JOB_PROGRAMS = re.compile(r"\b(?:srun|salloc|sbatch)\b(?!\s+--(?:help|usage|version)\b)(?P<words>[^;|&]*)")


def questions(cluster: Cluster, user: str) -> dict[str, tuple[str, ...]]:
    """Programs by name; the accounting is asked of QoS where a queue names one."""
    words = [word for queue in cluster.queue for word in queue.ask.get(NAME, ())]
    qos = ("sacctmgr", "-nP", "show", "qos", "format=Name,MaxWall,MaxSubmitPU,MaxTRES")
    return {
        VERSION: ("sinfo", "--version"),
        PARTITIONS: ("scontrol", "show", "partition"),
        NODES: ("sinfo", "--noheader", "--format=%R|%D|%c|%m|%G"),
        **({QOS: qos} if any(word.startswith("--qos=") for word in words) else {}),
        ACCOUNTS: ("sacctmgr", "-nP", "show", "assoc", f"user={user}", "format=Account"),
    }


def readings(outputs: Mapping[str, str]) -> Iterator[Reading]:
    """What the programs printed, as facts."""
    readers = {VERSION: _version, PARTITIONS: _partitions, NODES: _nodes, QOS: _qos, ACCOUNTS: _accounts}
    for name, text in outputs.items():
        if name in readers:
            yield from readers[name](text)


def starts_job(command: str) -> bool:
    """Whether a line of shell asks for nodes: `sbatch --test-only` does not."""
    return any("--test-only" not in match["words"].split() for match in _JOB_PROGRAMS.finditer(command))


def _version(text: str) -> Iterator[Reading]:
    if match := _VERSION.search(text):
        yield Reading(table="facts.system", key=NAME, value=match["version"], file=VERSION)


def _partitions(text: str) -> Iterator[Reading]:
    for record in records(text, "PartitionName"):
        name = record["PartitionName"]
        limits = {
            "max_time": duration(record.get("MaxTime", "")),
            "max_nodes": number(record.get("MaxNodes")),
            "default": record.get("Default") == "YES",
        }
        yield from _queue(PARTITIONS, f"partition {name}", f"--partition={name}", limits)


def _nodes(text: str) -> Iterator[Reading]:
    """The kind of node that there is most of among those with the most GPUs, once for each partition."""
    rows = [line.split("|") for line in text.splitlines() if line.count("|") == 4]
    kinds: dict[tuple[int, int, int], dict[str, int]] = {}
    for partition, count, cores, memory, gres in rows:
        size = [int(word.rstrip("+")) for word in (cores, memory) if word.rstrip("+").isdecimal()]
        if len(size) == 2 and count.isdecimal():
            gpus = sum(map(int, _GPUS.findall(gres)))
            partitions = kinds.setdefault((gpus, size[0], size[1]), {})
            partitions[partition] = partitions.get(partition, 0) + int(count)
    if not kinds:
        return
    most = max(gpus for gpus, _, _ in kinds)
    (gpus, cores_per_node, megabytes), partitions = max(
        ((kind, counts) for kind, counts in kinds.items() if kind[0] == most),
        key=lambda pair: max(pair[1].values()),
    )
    facts = {
        "gpus_per_node": gpus or None,
        "cores_per_node": cores_per_node,
        "memory_gb": megabytes // 1024,
        "nodes": max(partitions.values()),
    }
    for key, value in facts.items():
        if value is not None:
            yield Reading(table="hardware", key=key, value=value, file=NODES)


def _qos(text: str) -> Iterator[Reading]:
    for row in (line.split("|") for line in text.splitlines()):
        if len(row) == 4 and row[0]:
            name, wall, submitted, tres = row
            nodes = _NODES.search(tres)
            limits = {
                "max_time": duration(wall),
                "jobs_per_user": number(submitted),
                "max_nodes": int(nodes[1]) if nodes else None,
            }
            yield from _queue(QOS, f"QoS {name}", f"--qos={name}", limits)


def _accounts(text: str) -> Iterator[Reading]:
    names = [line.rstrip("|") for line in text.splitlines() if re.fullmatch(r"[\w.-]+\|?", line)]
    if names:
        yield Reading(table="policy", key="accounts", value=list(dict.fromkeys(names)), file=ACCOUNTS)


def _queue(file: str, row: str, word: str, limits: Mapping[str, Any]) -> Iterator[Reading]:
    yield Reading(table="queue", row=row, key="ask", value={NAME: [word]}, file=file)
    for key, value in limits.items():
        if value is not None:
            yield Reading(table="queue", row=row, key=key, value=value, file=file)
