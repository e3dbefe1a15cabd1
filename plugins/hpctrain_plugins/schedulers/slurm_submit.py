"""What sbatch answered: an id, a refusal, or nothing that one could rely on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hpctrain.plugin import Job, NotReachable, Problem, SubmitError
from hpctrain.toolbox import UNCLEAR
from hpctrain_plugins.schedulers.slurm_answers import ID, NO_ANSWER, REFUSED
from hpctrain_plugins.schedulers.slurm_query import ANY

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner

SECONDS = 60.0
_ID = re.compile(ID, re.ASCII)
_NO_ANSWER = re.compile(NO_ANSWER, re.IGNORECASE)
_REFUSED = re.compile(REFUSED, re.IGNORECASE)

HINTS = (
    (
        r"Assoc\w*Minutes|expired budget|no budget",
        "the project's budget: ask the site what is left of it",
    ),
    (r"MaxWall", 'ask for less time: [resources] time = "30m"'),
    (r"(?:Max|Min)(?:Node|Cpu|CPU|GRES|TRES)", "ask for fewer nodes: [resources] nodes = 1"),
    (r"MaxSubmitJob|MaxJobs", "wait until one of your jobs ends: hpctrain runs"),
    (r"account\b", 'set your project: [resources] account = "PROJECT"'),
    (r"memory specification|MaxMem|memory limit", "ask for less memory: [resources] memory_gb = 100"),
    (r"partition", "see which queues there are: hpctrain clusters NAME"),
    (r"job submit limit", "wait until one of your jobs ends: hpctrain runs"),
    (r"time limit", 'ask for less time: [resources] time = "30m"'),
    (r"node count|node configuration|more processors", "ask for fewer nodes: [resources] nodes = 1"),
    (r"dependency", "the earlier job is gone: hpctrain continue submits what is left"),
)


def submitted(job: Job, tools: ProgramRunner) -> str:
    """Call sbatch once. SubmitError says whether the job is refused or its state is unclear."""
    argv = _argv_with_valid_nodes(job, tools) if job.avoid else job.argv
    try:
        done = tools.run(argv, cwd=job.directory, env=job.env, timeout=SECONDS, ok=ANY)
    except NotReachable as error:
        if any(problem.code == "timeout" for problem in error.problems):
            raise unclear(job, str(error)) from error
        raise
    if done.code == 0:
        ids = [match[1] for line in done.out.splitlines() if (match := _ID.fullmatch(line.strip()))]
        if ids:
            return ids[-1]
    raise judged(job, f"{done.err}\n{done.out}".strip())


def _argv_with_valid_nodes(job: Job, tools: ProgramRunner) -> tuple[str, ...]:
    """The call without nodes that Slurm no longer has: one of them, and sbatch refuses the job."""
    listed = ",".join(job.avoid)
    ask = ("sinfo", "--noheader", "--Node", "--format=%N", f"--nodes={listed}")
    done = tools.run(ask, timeout=SECONDS, ok=ANY)
    names = {line.strip() for line in done.out.splitlines()} if done.code == 0 else set()
    valid = ",".join(node for node in job.avoid if node in names)
    word = f"--exclude={listed}"
    ours = f"--exclude={valid}"
    return tuple(ours if w == word else w for w in job.argv if w != word or valid)


def judged(job: Job, output: str) -> SubmitError:
    """Refused only when the words prove that no job exists; else unclear."""
    if _NO_ANSWER.search(output) or not _REFUSED.search(output):
        return unclear(job, output)
    words = [line.removeprefix("sbatch: ").removeprefix("error: ") for line in output.splitlines() if line]
    hint = next((hint for pattern, hint in HINTS if re.search(pattern, output, re.IGNORECASE)), "")
    return SubmitError(
        Problem(
            code="refused",
            message=f"slurm refused the job of step {job.step}: {words[-1] if words else 'no reason'}",
            where=job.step,
            hint=hint,
            notes=tuple(words[:-1]),
        )
    )


def unclear(job: Job, output: str) -> SubmitError:
    """Nobody knows yet whether the job exists; core looks its tag up."""
    return SubmitError(
        Problem(
            code=UNCLEAR,
            message=f"sbatch gave no clear answer for step {job.step}",
            where=job.step,
            notes=tuple(line for line in output.splitlines() if line)[-3:],
        )
    )
