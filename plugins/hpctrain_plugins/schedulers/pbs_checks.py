"""Options of qsub that a run file may not give, and facts of a cluster that PBS has no word for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpctrain.plugin import Plan, Problem, RunSpec

NAME = "pbs"
SIZE = "nodes = 2      (in [resources]; the chunks follow)"
ENV = '[env]\nNAME = "value"'
OPTIONS = {
    "-A": 'account = "NAME"      (in [resources])',
    "-C": "",
    "-I": "hpctrain shell RUN.toml",
    "-J": "",
    "-N": 'name = "NAME"      (of the run)',
    "-S": "",
    "-V": ENV,
    "-X": "",
    "-e": "",
    "-f": "",
    "-j": "",
    "-k": "",
    "-o": "",
    "-v": ENV,
    "-z": "",
}
"""Options, with the key to use instead, where there is one."""
RESOURCES = {
    "walltime": 'time = "2h"      (in [resources])',
    "select": SIZE,
    "nodes": SIZE,
    "ncpus": SIZE,
    "ngpus": SIZE,
    "mpiprocs": SIZE,
    "mem": SIZE,
}
"""Resources of -l that hpctrain asks for itself; others of a site are free."""
ATTRIBUTES = {"depend": "", "block": "", "sandbox": "", "umask": ""}
"""The same of -W."""


def words(run: RunSpec) -> Iterator[Problem]:
    """One for each such option: of the tag by which a job is found, its log, environment, account, size."""
    for number, word in enumerate(run.resources.ask.get(NAME, ())):
        option, key, instead = reserved_option(word)
        if instead is not None:
            refused_words = f"{option} {key}".strip()
            yield Problem(
                code="scheduler-word",
                message=f"hpctrain gives qsub {refused_words} itself: {word!r} would take its place",
                where=f"resources.ask.{NAME}[{number}]",
                hint=instead or f"remove {word!r}",
            )


def reserved_option(word: str) -> tuple[str, str, str | None]:
    """An option that is hpctrain's, its key, and what to write instead; None when the word is free."""
    option, value = word[:2], word[2:].strip()
    if option in OPTIONS:
        return option, "", OPTIONS[option]
    table = {"-l": RESOURCES, "-W": ATTRIBUTES}.get(option, {})
    keys = (part.partition("=")[0].strip() for part in re.split(r",(?=\w+=)", value))
    return next(((option, key, table[key]) for key in keys if key in table), (option, "", None))


def requeue(run: RunSpec) -> Iterator[Problem]:
    """A job of PBS is queued again by its operators alone: https://help.altair.com, qrerun."""
    if run.resources.is_chain and run.resources.requeue:
        yield Problem(
            code="scheduler-ignores",
            message="PBS lets no user queue a job again: the training would end after one attempt",
            where="resources.requeue",
            hint="requeue = false      (several jobs, each behind the one before)",
        )


def spares(run: RunSpec) -> Iterator[Problem]:
    """A job that loses a node ends, unless PBS was set up for more: its guide, "Reliable job startup"."""
    if run.resources.spare_nodes:
        yield Problem(
            code="no-guards",
            message="spare_nodes is not done with PBS, which ends the job of a node that dies",
            where="resources.spare_nodes",
            hint='total = "3d"      (jobs that follow each other, without spare nodes)',
        )


def facts(plan: Plan) -> Iterator[Problem]:
    """Facts of the cluster that are Slurm's words: nothing of them would reach the job."""
    if any(planned.step.launch.bind for planned in plan.steps if not planned.here):
        yield Problem(
            code="scheduler-fact",
            message="pbs binds no GPU to a rank: `bind` in [launch] would be lost",
            where="launch.bind",
            hint='visible = "one"      (each rank sees its own GPU alone)',
            notes=("what the site's mpiexec can bind is said by words for it, in a Layer's `starter`",),
        )
    if plan.cluster.launch.gpu_request == "gres":
        yield Problem(
            code="scheduler-fact",
            message='pbs knows no "gres": GPUs are a part of each chunk, ngpus=4',
            where="launch.gpu_request",
            hint='gpu_request = "gpus-per-node"',
        )
