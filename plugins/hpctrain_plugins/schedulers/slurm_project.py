"""What a project's users hold and wait for together: one squeue of the account."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hpctrain.plugin import JobState
from hpctrain_plugins.schedulers import slurm_query, slurm_words

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner

FIELDS = "JobID,State,UserName,NumNodes,tres-alloc,Partition,QOS"
_GPUS = re.compile(r"(?:^|,)gres/gpu=([0-9]{1,9})")


def jobs(account: str, tools: ProgramRunner) -> list[JobState]:
    """Jobs that run or wait; a site that hides those of others shows yours."""
    form = ",".join(f"{field}:{slurm_query.SEPARATOR}" for field in FIELDS.split(","))
    whose = f"--account={account}" if account else "--me"
    argv = ("squeue", whose, "--noheader", "--array", f"--Format={form}")  # each job of an array counts
    return parsed(slurm_query.squeue_lines(argv, tools))


def parsed(lines: Iterable[str]) -> list[JobState]:
    """Rows as states; what is no row of ours is passed over."""
    columns = FIELDS.count(",") + 1
    rows = [[part.strip() for part in line.split(slurm_query.SEPARATOR)][:columns] for line in lines]
    ours = [
        row for row in rows if len(row) == columns and row[0].isdigit() and slurm_query.NUMBER.match(row[3])
    ]
    return [_state(*row) for row in ours]


def _state(ident: str, state: str, user: str, nodes: str, counted: str, partition: str, qos: str) -> JobState:
    gpus = _GPUS.search(counted)
    return JobState(
        id=ident,
        state=slurm_words.state(state),
        user=user,
        node_count=int(nodes),
        gpus=int(gpus[1]) if gpus else None,
        queue_options=slurm_words.queue_options(partition, qos),
    )
