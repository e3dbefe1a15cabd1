"""The job that a shell stands in, by the variables that PBS gives to a job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hpctrain.plugin import Allocation
from hpctrain_plugins.schedulers import pbs_query, pbs_words

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner

LEFT_OUT = ("PBS_O_",)
"""What tells of the shell that called qsub, its folder among it."""


def current_allocation(environ: Mapping[str, str], tools: ProgramRunner) -> Allocation | None:
    """The allocation that these variables tell of: nodes from the node file, the time from qstat."""
    job = environ.get("PBS_JOBID", "")
    if not job:
        return None
    cpus = environ.get("NCPUS", "")
    return Allocation(
        job=job,
        nodes=len(set(_lines(environ.get("PBS_NODEFILE", "")))) or 1,
        cpus=int(cpus) if cpus.isdigit() else None,
        left_s=_left(job, tools),
        env={k: v for k, v in environ.items() if k.startswith("PBS_") and not k.startswith(LEFT_OUT)},
    )


def _lines(path: str) -> list[str]:
    """The hosts of the node file, one for each MPI process; none when it cannot be read."""
    try:
        return Path(path).read_text().split() if path else []
    except OSError:
        return []


def _left(job: str, tools: ProgramRunner) -> int | None:
    """The seconds until the time limit, from the start: PBS writes the time used so far but rarely."""
    done = tools.run(("qstat", "-f", "-F", "json", job), timeout=pbs_query.SECONDS, ok=pbs_query.ANY)
    try:
        answer = json.loads(done.out, strict=False)
        (row,) = answer["Jobs"].values()
        began = pbs_words.moment(row["stime"])
        limit = pbs_words.seconds(row["Resource_List"]["walltime"])
        return None if began is None or limit is None else max(0, int(began + limit - answer["timestamp"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
