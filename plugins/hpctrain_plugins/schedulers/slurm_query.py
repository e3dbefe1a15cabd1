"""What Slurm knows of jobs: one squeue call, then the accounting for those it has forgotten."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from hpctrain.plugin import Allocation, JobState, NotReachable, Problem
from hpctrain_plugins.schedulers import slurm_words as words
from hpctrain_plugins.schedulers.slurm_position import placed

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner

SECONDS = 60.0
ANY = range(-64, 256)
"""Every way a program can end; we read what it said."""
SEPARATOR = "\x1f"  # cannot be in a job's name or comment, as | can
SQUEUE = "JobID,State,exit_code,Reason,TimeUsed,TimeLimit,StartTime,NodeList,Partition,QOS,Name,Comment"
SACCT = "JobIDRaw,State,ExitCode,Reason,Elapsed,Timelimit,Start,NodeList,Partition,QOS,JobName,Comment"
COLUMNS = SQUEUE.count(",") + 1
SINCE = "now-2days"
LAYOUT = ("SLURM_MEM_PER_CPU", "SLURM_MEM_PER_GPU", "SLURM_CPU_BIND", "SLURM_DISTRIBUTION", "SLURM_EXACT")
"""Options of the shell that srun would take for those of every step inside."""
NUMBER = re.compile(r"[0-9]{1,9}\Z")
_GONE = re.compile(r"invalid job id|already (?:completing|completed)|job/step already", re.IGNORECASE)
Code: TypeAlias = "Callable[[str], int | None]"
_TAG = re.compile(r"(?:hpctrain:|\.)([0-9a-f]{32})(?![0-9a-f])", re.ASCII)


def states(ids: tuple[str, ...], tags: tuple[str, ...], tools: ProgramRunner) -> list[JobState]:
    """The jobs among `ids` and `tags` that Slurm knows, or all of mine; a missing one is for the caller
    to call unknown."""
    if not (ids or tags):
        return queue(tools, "--array")  # a limit counts each job of an array
    queued = queue(tools)
    jobs = [job for job in queued if job.id in ids or (job.tag and job.tag in tags)]
    lost_ids = tuple(i for i in ids if all(job.id != i for job in jobs))
    lost_tags = tuple(t for t in tags if all(job.tag != t for job in jobs))
    if lost_ids:
        jobs += accounted(("--jobs=" + ",".join(lost_ids),), tools)
    elif lost_tags:
        jobs += [job for job in accounted((f"--starttime={SINCE}",), tools) if job.tag in lost_tags]
    return placed(jobs, tools)


def queue(tools: ProgramRunner, *options: str) -> list[JobState]:
    """All jobs of mine in the controller's memory, also those that just ended."""
    form = ",".join(f"{field}:{SEPARATOR}" for field in SQUEUE.split(","))
    argv = ("squeue", "--me", "--noheader", "--states=all", *options, f"--Format={form}")
    return parsed(squeue_lines(argv, tools), SEPARATOR, _wait_status)


def squeue_lines(argv: tuple[str, ...], tools: ProgramRunner) -> list[str]:
    """The lines of one squeue; NotReachable when the controller is silent."""
    try:
        done = tools.run(argv, timeout=SECONDS, ok=ANY)
    except NotReachable as error:
        raise _silent(str(error)) from error
    if done.code != 0:
        raise _silent(done.err)
    return done.out.splitlines()


def accounted(selection: tuple[str, ...], tools: ProgramRunner) -> list[JobState]:
    """The states of jobs from the accounting, newest attempt of each; [] where a site has none."""
    argv = ("sacct", "--allocations", "--noheader", "--parsable2", f"--format={SACCT}", *selection)
    try:
        done = tools.run(argv, timeout=SECONDS, ok=ANY)
    except NotReachable:
        return []
    jobs = parsed(done.out.splitlines(), "|", _exit_code) if done.code == 0 else []
    return [*{job.id: job for job in jobs}.values()]


def parsed(lines: Iterable[str], separator: str, code: Code) -> list[JobState]:
    """Rows as states; what is no row of ours (a banner of the site) is passed over."""
    rows = (line.strip("\n").split(separator, COLUMNS - 1) for line in lines)
    return [_state(row, code) for row in rows if len(row) == COLUMNS and row[0].strip().isdigit()]


def _state(row: Iterable[str], code: Code) -> JobState:
    ident, state, status, reason, used, limit, start, nodes, partition, qos, name, comment = (
        part.strip() for part in row
    )
    job_state = words.state(state)
    tag = _TAG.search(comment) or _TAG.search(name)
    return JobState(
        id=ident,
        state=job_state,
        tag=tag[1] if tag else "",
        name=name,
        reason=words.reason(reason, state),
        exit_code=code(status) if job_state.over else None,
        nodes=() if nodes.startswith(("None", "(null)")) else words.hosts(nodes),
        elapsed_s=seconds(used),
        limit_s=seconds(limit),
        queue_options=words.queue_options(partition, qos),
        start="" if start in ("N/A", "Unknown", "None") else start,
    )


def seconds(text: str) -> int | None:
    """`1-02:03:04`, `02:03` or UNLIMITED as seconds."""
    days, dash, clock = text.rpartition("-")
    parts = clock.split(":")
    if len(parts) > 3 or not all(NUMBER.match(part) for part in (*parts, days or "0")):
        return None
    if dash:
        parts += ["0"] * (3 - len(parts))
    total = 0
    for part in parts:
        total = total * 60 + int(part)
    return total + int(days or 0) * 86400


def _wait_status(text: str) -> int | None:
    """squeue gives the status of wait(2)."""
    if not NUMBER.match(text):
        return None
    status = int(text)
    return status >> 8 if status >> 8 else (128 + (status & 127) if status & 127 else 0)


def _exit_code(text: str) -> int | None:
    """The exit code in sacct's `code:signal`."""
    code, _, signal = text.partition(":")
    if not NUMBER.match(code):
        return None
    return int(code) or (128 + int(signal) if NUMBER.match(signal) and int(signal) else 0)


def current_allocation(environ: Mapping[str, str], tools: ProgramRunner) -> Allocation | None:
    """The allocation that these variables tell of, with the time that Slurm says is left."""
    job = environ.get("SLURM_JOB_ID", "")
    if not job:
        return None
    done = tools.run(("squeue", "--noheader", f"--jobs={job}", "--format=%L"), timeout=SECONDS, ok=ANY)
    variables = {name: value for name, value in environ.items() if name.startswith("SLURM_")}
    for name in LAYOUT:
        variables.pop(name, None)
    nodes = environ.get("SLURM_JOB_NUM_NODES", "1")
    cpus = re.findall(r"(?:^|,)(\d+)", environ.get("SLURM_JOB_CPUS_PER_NODE", ""))  # 64(x2),32
    return Allocation(
        job=job,
        nodes=int(nodes) if NUMBER.match(nodes) else 1,
        cpus=min(map(int, cpus), default=None),
        left_s=seconds(done.out.strip()) if done.code == 0 else None,
        # a shell is itself a step, which holds what our own steps need
        env={**variables, "SLURM_OVERLAP": "1"},
    )


def cancelled(ids: tuple[str, ...], tools: ProgramRunner) -> bool:
    """Cancel jobs; those that are over or unknown are no error, an unanswered request is one."""
    if not ids:
        return True
    try:
        done = tools.run(("scancel", *ids), timeout=SECONDS, ok=ANY)
    except NotReachable as error:
        raise _silent(str(error)) from error
    errors = [line for line in done.err.splitlines() if not _GONE.search(line)]
    if done.code != 0 and errors:
        raise _silent("\n".join(errors))
    return True


def _silent(output: str) -> NotReachable:
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "no answer")
    return NotReachable(
        Problem(
            code="scheduler-silent",
            message="slurm does not answer",
            notes=(last.strip(),),
            hint="try again in a minute",
        )
    )
