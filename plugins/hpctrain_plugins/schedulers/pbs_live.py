"""What PBS says today of a cluster that has facts already: its queues, their limits, its version.

`qstat -Q -f -F json`: numbers in it are texts or numbers, by the version
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpctrain.plugin import Duration, Reading

NAME = "pbs"
QUEUES = "queues"
_QUEUED = re.compile(r"u:PBS_GENERIC=(\d+)")
"""In `max_queued`: how many jobs any user may have in the queue."""
_JOB_PROGRAMS = re.compile(r"\b(?:qsub|mpiexec|pbsdsh)\b(?!\s+--(?:help|version)\b)")


def readings(outputs: Mapping[str, str]) -> Iterator[Reading]:
    """What qstat printed, as facts; a queue that only routes has the limits of those behind it."""
    try:
        reply = json.loads(outputs.get(QUEUES, ""))
    except ValueError:
        return
    queues = reply.get("Queue") if isinstance(reply, dict) else None
    if not isinstance(queues, dict):
        return
    if reply.get("pbs_version"):
        yield Reading(table="facts.system", key=NAME, value=str(reply["pbs_version"]), file=QUEUES)
    for name, settings in queues.items():
        if isinstance(settings, dict):
            yield from _queue(str(name), settings)


def starts_job(command: str) -> bool:
    """Whether a line of shell asks for nodes."""
    return _JOB_PROGRAMS.search(command) is not None


def _queue(name: str, settings: Mapping[str, Any]) -> Iterator[Reading]:
    yield Reading(table="queue", row=name, key="ask", value={NAME: [f"-q {name}"]}, file=QUEUES)
    if match := _QUEUED.search(str(settings.get("max_queued", ""))):
        yield Reading(table="queue", row=name, key="jobs_per_user", value=int(match[1]), file=QUEUES)
    for bound, time_key, nodes_key in (
        ("resources_max", "max_time", "max_nodes"),
        ("resources_min", "min_time", "min_nodes"),
    ):
        limits = settings.get(bound)
        if not isinstance(limits, dict):
            continue
        if time := _duration(str(limits.get("walltime", ""))):
            yield Reading(table="queue", row=name, key=time_key, value=time, file=QUEUES)
        if str(limits.get("nodect", "")).isdecimal():
            yield Reading(table="queue", row=name, key=nodes_key, value=int(limits["nodect"]), file=QUEUES)


def _duration(text: str) -> str | None:
    try:
        return Duration.parse(text).short
    except ValueError:
        return None
