"""What qsub answered: an id, a refusal, or nothing that one could rely on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hpctrain.plugin import Job, NotReachable, Problem, SubmitError
from hpctrain.toolbox import UNCLEAR
from hpctrain_plugins.schedulers.pbs_answers import ID, NO_ANSWER, REFUSED_WORDS
from hpctrain_plugins.schedulers.pbs_query import ANY

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner

SECONDS = 60.0
_ID = re.compile(ID, re.ASCII)
_NO_ANSWER = re.compile(NO_ANSWER, re.IGNORECASE)
REFUSING_CODES = frozenset((2, 3, 5, 6, 32, 38, 39, 159, 166, 170, 173, 174, 175, 187, 188))
"""Exit codes of qsub that say no: its own for wrong words, or the last byte of the server's error."""
_REFUSED = re.compile(REFUSED_WORDS, re.IGNORECASE)
"""The words of exit code 1, which is also that of a connection that broke."""

HINTS = (
    (r"resource limits", 'ask for less: [resources] time = "30m" or nodes = 1'),
    (r"exceed .*(?:limit)", "wait until one of your jobs ends: hpctrain runs"),
    (r"unknown queue|queue is not enabled", "see which queues there are: hpctrain clusters NAME"),
    (r"account|project", 'set your project: [resources] account = "PROJECT"'),
    (r"unknown resource", "see which words the cluster gives: hpctrain clusters NAME"),
    (r"depend|-W value", "the earlier job is gone: hpctrain continue submits what is left"),
)


def submitted(job: Job, tools: ProgramRunner) -> str:
    """Call qsub once. SubmitError says whether the job is refused or its state is unclear."""
    try:
        done = tools.run(job.argv, cwd=job.directory, env=job.env, timeout=SECONDS, ok=ANY)
    except NotReachable as error:
        if any(problem.code == "timeout" for problem in error.problems):
            raise unclear(job, str(error)) from error
        raise
    if done.code == 0:
        ids = [line.strip() for line in done.out.splitlines() if _ID.fullmatch(line.strip())]
        if ids:
            return ids[-1]
    raise judged(job, done.code, f"{done.err}\n{done.out}".strip())


def judged(job: Job, code: int, output: str) -> SubmitError:
    """Refused only when code and words prove that no job exists; else unclear."""
    says_no = code in REFUSING_CODES or (code == 1 and _REFUSED.search(output))
    if _NO_ANSWER.search(output) or not says_no:
        return unclear(job, output)
    lines = [line.removeprefix("qsub:").strip() for line in output.splitlines() if line.strip()]
    hint = next((hint for pattern, hint in HINTS if re.search(pattern, output, re.IGNORECASE)), "")
    return SubmitError(
        Problem(
            code="refused",
            message=f"pbs refused the job of step {job.step}: {lines[0] if lines else 'no reason'}",
            where=job.step,
            hint=hint,
        )
    )


def unclear(job: Job, output: str) -> SubmitError:
    """Nobody knows yet whether the job exists; core looks its tag up."""
    return SubmitError(
        Problem(
            code=UNCLEAR,
            message=f"qsub gave no clear answer for step {job.step}",
            where=job.step,
            notes=tuple(line for line in output.splitlines() if line)[-3:],
        )
    )
