"""The schedulers that we ship hold what the kit asks of anybody's."""

from __future__ import annotations

import json
from typing import ClassVar

from hpctrain.testing import Answer, SchedulerConformance
from hpctrain_plugins.schedulers.pbs_query import MARK, VARIABLE
from hpctrain_plugins.schedulers.slurm_query import SEPARATOR
from tests.schedulers import recorded

TAG = "{tag}"


def squeue(state: str, reason: str = "None", status: str = "0") -> Answer:
    """A row of squeue as `SQUEUE` asks for it."""
    row = ("{id}", state, status, reason, "1:02", "1-00:00:00", "2026-01-01T00:00:00", "n[1-2]", "batch")
    return Answer(SEPARATOR.join((*row, "normal", f"r.train.{TAG}", f"hpctrain:{TAG}")) + "\n")


SILENT = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"


class TestSlurm(SchedulerConformance):
    scheduler = "slurm"
    queue_options = ("--partition=batch",)
    answers: ClassVar = {
        "accepted": {"sbatch": Answer("4242;cluster\n")},
        "refused": {"sbatch": Answer(err="sbatch: error: invalid partition specified: nowhere\n", code=1)},
        "lost": {
            "sbatch": Answer(err="sbatch: error: Batch job submission failed: Socket timed out\n", code=1)
        },
        "queued": {"squeue": squeue("PENDING", "Resources")},
        "running": {"squeue": squeue("RUNNING")},
        "done": {"squeue": squeue("COMPLETED")},
        "failed": {"squeue": squeue("FAILED", "NonZeroExitCode", "768")},
        "cancelled": {"squeue": squeue("CANCELLED")},
        "forgotten": {
            "squeue": Answer(),
            "sacct": Answer(err="Slurm accounting storage is disabled\n", code=1),
        },
        "silent": {"squeue": Answer(err=SILENT, code=1), "scancel": Answer(err=SILENT, code=1)},
        "over": {
            "scancel": Answer(err="scancel: error: Kill job error on job id 4242: Invalid job id\n", code=1)
        },
    }


def recording(file: str, name: str) -> Answer:
    """What a real OpenPBS answered, to the letter."""
    answer = recorded.answer(file, name)
    return Answer(answer.out, answer.err, answer.code)


def qstat(name: str) -> Answer:
    """A job of a real qstat as the kit's own: with its id, and its tag in the variable that ours have."""
    answer = recorded.answer("qstat", name)
    document = json.loads(answer.out, strict=False)
    (row,) = document["Jobs"].values()
    row["Variable_List"][VARIABLE] = f"{MARK}{TAG}"
    return Answer(json.dumps({**document, "Jobs": {"{id}": row}}), answer.err, answer.code)


class TestPbs(SchedulerConformance):
    scheduler, job = "pbs", "246.pbs"
    queue_options = ("-q capacity",)
    ignores: ClassVar = {}
    answers: ClassVar = {
        "accepted": {"qsub": Answer("246.pbs\n")},
        "refused": {"qsub": recording("qsub", "unknown queue")},
        "lost": {"qsub": recording("faults", "connection broken while the job is handed in (EOF)")},
        "queued": {
            "qselect": Answer("{id}\n"),
            "qstat": qstat("json: Q, has to wait: see comment"),
        },
        "running": {"qselect": Answer("{id}\n"), "qstat": qstat("json: R on two nodes")},
        "done": {"qstat": qstat("json -x: exit 0")},
        "failed": {"qstat": qstat("json -x: exit 3")},
        "cancelled": {"qstat": qstat("json -x: qdel while running")},
        "forgotten": {"qstat": recording("qstat", "unknown id, -x json"), "qselect": Answer()},
        "silent": {
            name: recording("faults", f"server down: {name}") for name in ("qstat", "qselect", "qdel")
        },
        "over": {"qdel": recording("qdel", "qdel: again, finished")},
    }


class TestLocal(SchedulerConformance):
    scheduler, live = "local", True
    ignores: ClassVar = {
        "account": "nobody is charged on one's own computer",
        "cpus_per_rank": "ranks share all cores of the computer, as its kernel sees fit",
        "gpu_request": "all GPUs are there; nothing is asked for them",
        "jobs_per_user": "one's own computer has no queues",
    }
