"""Options of sbatch that a run file may not give, because they would undo what hpctrain gives itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpctrain.plugin import Plan, Problem, RunSpec

NAME = "slurm"
KEYS = {
    "account": 'account = "NAME"      (in [resources])',
    "chdir": "",
    "comment": "",
    "dependency": "",
    "error": "",
    "export": '[env]\nNAME = "value"',
    "export-file": '[env]\nNAME = "value"',
    "job-name": 'name = "NAME"      (of the run)',
    "nodes": "nodes = 2      (in [resources])",
    "ntasks": "gpus = 8      (in [resources]; ranks follow)",
    "ntasks-per-node": "gpus = 8      (in [resources]; ranks follow)",
    "open-mode": "",
    "output": "",
    "parsable": "",
    "array": "",
    "time": 'time = "2h"      (in [resources])',
    "wrap": "",
}
"""Long options, with the key to use instead, where there is one."""
SHORT = {
    "A": "account",
    "D": "chdir",
    "J": "job-name",
    "N": "nodes",
    "a": "array",
    "d": "dependency",
    "e": "error",
    "n": "ntasks",
    "o": "output",
    "t": "time",
}
_LONG = re.compile(r"--([a-z][a-z-]*)")


def problems(run: RunSpec) -> Iterator[Problem]:
    """One for each such option: of the tag by which a job is found, its log, environment, account, size."""
    for number, word in enumerate(run.resources.ask.get(NAME, ())):
        name = option(word)
        if name in KEYS:
            yield Problem(
                code="scheduler-word",
                message=f"hpctrain gives sbatch --{name} itself: {word!r} would take its place",
                where=f"resources.ask.{NAME}[{number}]",
                hint=KEYS[name] or f"remove {word!r}",
            )


def unguarded(plan: Plan) -> Iterator[Problem]:
    """Ranks that srun alone can start: guards start theirs as their own children."""
    for planned in plan.steps:
        launch, words = planned.step.launch, planned.around.starter.get(NAME, ())
        reasons = (
            "srun starts the container of its ranks" if words else "",
            f'srun binds their GPUs (bind = "{launch.bind}")' if launch.bind else "",
            'srun shows each its GPU (visible = "one")' if launch.visible == "one" else "",
        )
        reason = next(filter(None, reasons), "")
        if launch.spare_nodes and reason:
            yield Problem(
                code="no-guards",
                message=f"spare_nodes needs ranks that the guard of a node can start, and on "
                f"{plan.cluster.name} {reason}",
                where="resources.spare_nodes",
                hint='remove spare_nodes      (total = "3d": jobs that follow each other do without)',
            )


def option(word: str) -> str:
    """The long name of an option; sbatch takes any beginning of one that fits no other."""
    if match := _LONG.match(word):
        begun = [name for name in KEYS if name.startswith(match[1])]
        return match[1] if match[1] in KEYS else (begun[0] if len(begun) == 1 and len(match[1]) > 2 else "")
    return SHORT.get(word[1:2], "") if word.startswith("-") else ""
