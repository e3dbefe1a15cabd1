"""What PBS knows of jobs: one qstat of their ids, with their history where the site keeps one."""

from __future__ import annotations

import json
import os
import pwd
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from hpctrain.plugin import JobState, NotReachable, Problem
from hpctrain_plugins.schedulers import pbs_words as words

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner

SECONDS = 60.0
ANY = range(-64, 256)
"""Every way a program can end; we read what it said."""
MARK = "hpctrain:"
"""In front of a tag in the job's variable: qstat writes one that looks like a number as that number."""
VARIABLE = "HPC_SUBMITTED"
"""The variable of a job that holds its tag, and tells it that PBS started it."""
STUCK = "what it waits for was deleted before it ran, and PBS holds it for ever: hpctrain cancel"
NO_HISTORY = "not configured to maintain job history"
_HARMLESS = re.compile(rf"Unknown Job|has finished|illegally formed|{NO_HISTORY}|Unauthorized", re.IGNORECASE)
_GONE = re.compile(r"Unknown Job|has finished|state of job|illegally formed", re.IGNORECASE)
_ID = re.compile(r"\d+(?:\[\d*\])?(?:\.[\w.-]+)?\Z", re.ASCII)
_TAG = re.compile(r"\.([0-9a-f]{32})\Z", re.ASCII)


def states(ids: tuple[str, ...], tags: tuple[str, ...], tools: ProgramRunner) -> list[JobState]:
    """The jobs among `ids` and `tags` that PBS knows, or all of mine; a missing one is for the caller to call
    unknown."""
    jobs = rows(ids, tools) if ids else []
    if not (ids or tags):
        return rows(selected(("-u", user()), tools), tools, apart=True)
    if any(all(job.tag != tag for job in jobs) for tag in tags):
        listed = {job.id for job in jobs}
        history = selected(("-x", "-u", user()), tools)
        candidates = rows(tuple(ident for ident in history if ident not in listed), tools)
        jobs += [job for job in candidates if job.tag in tags]
    return jobs


def of_project(account: str, tools: ProgramRunner) -> list[JobState]:
    """The jobs of all users of an account that run or wait; a site that hides those of others shows yours."""
    whose = ("-A", account) if account else ("-u", user())
    return rows(selected(whose, tools), tools, apart=True)


def user() -> str:
    """Who asks, by number: variables of a shell may say another name."""
    return pwd.getpwuid(os.getuid()).pw_name


def selected(criteria: tuple[str, ...], tools: ProgramRunner) -> tuple[str, ...]:
    """The ids that qselect answers; without history where there is none."""
    out, err = _answered(("qselect", *criteria), tools)
    if NO_HISTORY in err and "-x" in criteria:
        out, err = _answered(("qselect", *(word for word in criteria if word != "-x")), tools)
    return tuple(line.strip() for line in out.splitlines() if _ID.match(line.strip()))


def rows(ids: Iterable[str], tools: ProgramRunner, *, apart: bool = False) -> list[JobState]:
    """The jobs of these ids; one that is over only where the site keeps a history.

    `apart`, an array is as many jobs as it still has sub-jobs: so limits count it.
    """
    valid_ids = tuple(ident for ident in ids if _ID.match(ident))  # one bad id is an error for all
    if not valid_ids:
        return []
    out, err = _answered(("qstat", "-x", "-f", "-F", "json", *valid_ids), tools)
    if NO_HISTORY in err:  # and exit 0, and not even of the jobs that run
        out, err = _answered(("qstat", "-f", "-F", "json", *valid_ids), tools)
    return parsed(out, valid_ids, apart=apart)


def parsed(text: str, requested_ids: tuple[str, ...] = (), *, apart: bool = False) -> list[JobState]:
    """The jobs of an answer, by the ids that were asked for; NotReachable for what is no answer."""
    try:
        table = json.loads(text[text.index("{") :], strict=False).get("Jobs", {})
        jobs = [(str(ident), row) for ident, row in table.items() if isinstance(row, dict)]
    except (ValueError, AttributeError, RecursionError) as error:
        raise _silent("qstat wrote what is no JSON") from error
    numbers = {ident.partition(".")[0]: ident for ident in requested_ids}
    job_states = []
    for ident, row in jobs:
        reason = STUCK if words.is_stuck(row, table) else words.reason(row)
        job = _state(numbers.get(ident.partition(".")[0], ident), row, reason)
        sub_jobs = words.sub_jobs(row) if apart else []
        job_states += [attrs.evolve(job, state=state) for state in sub_jobs] or [job]
    return job_states


def _state(ident: str, row: Mapping[str, Any], reason: str) -> JobState:
    requested = _table(row, "Resource_List")
    variables = _table(row, "Variable_List")
    queues = dict.fromkeys(str(q) for q in (row.get("queue"), variables.get("PBS_O_QUEUE")) if q)
    job_state = words.state(row)
    return JobState(
        id=ident,
        state=job_state,
        tag=_tag(str(row.get("Job_Name", "")), variables),
        name=str(row.get("Job_Name", "")),
        reason=reason,
        exit_code=words.exit_code(row) if job_state.over else None,
        nodes=words.hosts(str(row.get("exec_host", ""))),
        elapsed_s=words.seconds(_table(row, "resources_used").get("walltime", "")),
        limit_s=words.seconds(requested.get("walltime", "")),
        # what qstat -T shows; the scheduler's order is the site's own, and no command tells a place in it
        start=words.iso(row.get("stime") or _table(row, "estimated").get("start_time")),
        user=str(row.get("Job_Owner", "")).partition("@")[0],
        node_count=_number(requested, "nodect") or 0,
        gpus=_number(requested, "ngpus"),
        queue_options=tuple(f"-q {name}" for name in queues),  # where it is, and what it was routed from
    )


def _tag(name: str, variables: Mapping[str, Any]) -> str:
    """The tag in either place, since sites rewrite names and hide variables."""
    value = str(variables.get(VARIABLE, ""))
    if value.startswith(MARK):
        return value.removeprefix(MARK)
    match = _TAG.search(name)
    return match[1] if match else ""


def _table(row: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = row.get(name)
    return value if isinstance(value, dict) else {}


def _number(table: Mapping[str, Any], name: str) -> int | None:
    value = table.get(name)
    return value if isinstance(value, int) else None


def cancelled(ids: tuple[str, ...], tools: ProgramRunner) -> bool:
    """Delete jobs; those that are over or unknown are no error, an unanswered request is one."""
    valid_ids = tuple(ident for ident in ids if _ID.match(ident))
    if not valid_ids:
        return True
    try:
        done = tools.run(("qdel", *valid_ids), timeout=SECONDS, ok=ANY)
    except NotReachable as error:
        raise _silent(str(error)) from error
    errors = [line for line in done.err.splitlines() if line.strip() and not _GONE.search(line)]
    if done.code != 0 and errors:
        raise _silent("\n".join(errors))
    return True


def _answered(argv: tuple[str, ...], tools: ProgramRunner) -> tuple[str, str]:
    """What a question was answered; NotReachable when it was not."""
    try:
        done = tools.run(argv, timeout=SECONDS, ok=ANY)
    except NotReachable as error:
        raise _silent(str(error)) from error
    if done.code != 0 and not _HARMLESS.search(done.err):
        raise _silent(done.err)
    return done.out, done.err


def _silent(output: str) -> NotReachable:
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "no answer")
    return NotReachable(
        Problem(
            code="scheduler-silent",
            message="pbs does not answer",
            notes=(last.strip(),),
            hint="try again in a minute",
        )
    )
