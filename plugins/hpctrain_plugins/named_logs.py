"""A second name for the log of training: the one that a site's document tells people to look at."""

from __future__ import annotations

from hpctrain.plugin import Cmd, template

LOG = "train.log"


def linked(name: str) -> tuple[Cmd, ...]:
    """Lines of job.sh that make `logs/NAME` lead to the log; `${HPC_JOB}` in it is the job's id."""
    folder = name.rpartition("/")[0]
    folder_commands = (Cmd.of("mkdir", "-p", f"logs/{folder}"),) if folder else ()
    return (*folder_commands, Cmd.of("ln", "-sfn", "../" * name.count("/") + LOG, template(f"logs/{name}")))
