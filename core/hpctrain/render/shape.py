"""What a scheduler says of its own in the scripts that all schedulers share."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from attrs import frozen

from hpctrain.model.step import Launch
from hpctrain.model.words import Cmd, Word
from hpctrain.render import shell
from hpctrain.render.vetting import Vetting


@frozen(kw_only=True)
class Handover:
    """How a job of a chain hands over the next one: the same call from inside of a job, and what the answers
    mean. The regular expressions are searched for in one text of both streams, whatever the case."""

    submit: Cmd
    """The scheduler's call, as in `JobFiles`."""
    find: tuple[Word, ...]
    """Words that print the ids of the jobs with the tag HPC_TAG, one a line."""
    id: str
    """Matches a whole line that is an id, which is its group 1."""
    refused: str
    """Matches an answer that proves that there is no job."""
    unclear: str
    """Matches an answer that proves nothing, whatever else it says."""
    environ: tuple[str, ...] = ()
    """Variables of the job that the scheduler's programs need to find it; all others are options of this job,
    and would be the next one's."""


@frozen(kw_only=True)
class Guards:
    """How the guards of a job with spare nodes are started; `hpctrain_job.guards` says what they do."""

    start: tuple[Word, ...]
    """Words that start one process on each node of the job, in front of `bash guard.sh`; the death of one, or
    of its node, ends no other."""
    node: str
    """The name of the node in such a process, as bash reads it: as `hpc_nodes` prints it."""
    notice: int
    """How many seconds before the time limit the job hears USR1."""
    suffix: str
    """What makes the name of a node one in the fast network."""
    functions: str
    """A file of the step with the scheduler's functions of job.sh."""

    def terms(self, launch: Launch) -> dict[str, object]:
        """What a guard has to know of its ranks."""
        return {
            "nodes": launch.nodes,
            "per_node": launch.ranks_per_node,
            "world": launch.world,
            "cores": launch.cpus_per_rank,
            "notice": self.notice,
            "suffix": self.suffix,
        }

    def training(self, guarded: str, plain: str) -> tuple[str, ...]:
        """Lines of job.sh: a job that was submitted starts guards, another one the ranks."""
        start = f"  hpc_start hpc_guarded {guarded}"
        return ("if [[ ${hpc_chained:-} ]]; then", "  hpc_guards", start, "else", f"  {plain}", "fi")

    def scripts(self, step: str, node: tuple[str, ...], search: str) -> dict[str, str]:
        """guard.sh, once on each node; act.sh, by which a guard does what job.sh would."""
        guard = (
            "#!/bin/bash",
            "set -euo pipefail",
            'cd "$HPC_RUN"',
            *node,
            f"exec >>logs/{step}.log 2>&1  # the starter of this script may die with its node",
            f'export PYTHONPATH="{search}${{PYTHONPATH:+:$PYTHONPATH}}"',
            f'exec "$HPC_PYTHON" -m hpctrain_job.guards.guard --node={self.node}',
        )
        act = (
            "#!/bin/bash",
            "# avoid NODE,NODE JOB... | close CODE SIGNAL",
            "set -euo pipefail",
            "umask 077",
            'cd "$HPC_RUN"',
            f". steps/{step}/{self.functions}",
            ". code/job.sh",
            '"hpc_$1" "${@:2}"',
        )
        files = {"guard.sh": guard, "act.sh": act}
        return {f"steps/{step}/{name}": shell.script(lines) for name, lines in files.items()}


@frozen(kw_only=True)
class Shape:
    """What a scheduler adds to the scripts that all schedulers share; `step_files` takes it."""

    header: tuple[str, ...] = ()
    """Lines under the shebang of job.sh: the scheduler's directives."""
    begin: tuple[str, ...] = ()
    """The first lines of job.sh that run: into the run directory, where a job starts elsewhere."""
    job: tuple[str, ...]
    """Lines of job.sh that export HPC_JOB, HPC_NODES, HPC_HEAD (the first node), HPC_GPUS (of each node) and
    HPC_ATTEMPT (0, and one more each time that the job is started again)."""
    tag: str = ""
    """The HPC_TAG of the submission as bash reads it in the job, `"${1:-}"`: of two jobs with one tag the
    second ends at once. Empty, here or in the job: nothing is claimed."""
    notice: int = 0
    """Seconds after which a job with a tag sends itself USR1, for a scheduler that gives no warning before
    the time limit."""
    rank: tuple[str, ...]
    """Lines of rank.sh that export HPC_RANK, HPC_LOCAL_RANK, HPC_NODE_RANK and HPC_WORLD."""
    node: tuple[str, ...] = ()
    """Lines of node.sh."""
    start: tuple[Word, ...] = ()
    """Words that start every rank, in front of `bash rank.sh`."""
    start_nodes: tuple[Word, ...] = ()
    """Words that start one process a node, in front of `bash node.sh`."""
    vetting: Vetting | None = None
    """How nodes are measured before a training; None: they are not."""
    files: Mapping[str, str] = attrs.field(factory=dict)
    """More files of the step's folder."""
    handover: Handover | None = None
    """How jobs of a chain hand over further ones; None: only `hpctrain continue` does."""
    guards: Guards | None = None
    """How guards are started, where the job has spare nodes."""


HERE = Shape(
    job=("export HPC_JOB=here-$$ HPC_NODES=1 HPC_HEAD=127.0.0.1 HPC_GPUS=0 HPC_ATTEMPT=0",),
    rank=("export HPC_RANK=0 HPC_LOCAL_RANK=0 HPC_NODE_RANK=0 HPC_WORLD=1",),
)
"""Of a step that runs where hpctrain was started: the same scripts, no scheduler."""
