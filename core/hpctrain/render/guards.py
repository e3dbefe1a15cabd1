"""The scripts by which a job with spare nodes guards them: `hpctrain_job.guards` says what they do there."""

from __future__ import annotations

from attrs import frozen

from hpctrain.model.step import Launch
from hpctrain.model.words import Word


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
        return {f"steps/{step}/{name}": "\n".join(lines) + "\n" for name, lines in files.items()}
