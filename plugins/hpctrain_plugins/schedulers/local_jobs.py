"""The jobs of this machine: small files in the user's state folder, one process group each."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import attrs

from hpctrain.plugin import Job, JobState, NotReachable, Problem, ProgramRunner, State, SubmitError
from hpctrain.toolbox import UNCLEAR, ToolFailed, state_folder

GRACE_SECONDS = 10.0
"""Between TERM and KILL."""


@attrs.frozen
class LocalJob:
    """One job; `start` tells its process from a later one with the same number."""

    folder: Path
    id: str
    pid: int
    start: str
    tag: str
    step: str

    def file(self, ending: str) -> Path:
        """One of its files in the state folder."""
        return self.folder / f"{self.id}.{ending}"

    @property
    def alive(self) -> bool:
        return _born(self.pid) == self.start

    @property
    def state(self) -> JobState:
        """What the files and the process say together."""
        alive, code = self.alive, _number(self.file("end"))
        if code is None and not alive:
            code = _number(self.file("end"))  # it may have ended between the two looks
        began = _number(self.file("run"))
        state, reason = self._judged(alive, code, began)
        return JobState(
            id=self.id,
            state=state,
            tag=self.tag,
            name=self.step,
            reason=reason,
            exit_code=code if state.over else None,
            nodes=(os.uname().nodename,),
            elapsed_s=max(0, int(time.time()) - began) if began and state is State.RUNNING else None,
        )

    def _judged(self, alive: bool, code: int | None, began: int | None) -> tuple[State, str]:
        if code == 0:
            return State.DONE, ""
        if code is None and alive:
            return (State.RUNNING, "") if began else (State.QUEUED, "it waits for an earlier step")
        if self.file("cancelled").exists():
            return State.CANCELLED, "" if began else "it was cancelled before it began"
        if self.file("late").exists():
            return State.FAILED, "it ran into its time limit"
        if code is None:
            return State.FAILED, "it ended without a word: killed, or the machine restarted"
        return State.FAILED, "its commands failed"


def folder() -> Path:
    """Where the jobs of this user are listed."""
    return state_folder(os.environ) / "jobs"


def submitted(job: Job, tools: ProgramRunner) -> str:
    """Start the runner and give the id it took."""
    env = {**job.env, "HPC_STATE": str(folder())}
    try:
        done = tools.run(job.argv, cwd=job.directory, env=env)
    except ToolFailed as error:
        raise _not_started("refused", job, error.done.err) from error
    except NotReachable as error:
        if all(problem.code != "timeout" for problem in error.problems):
            raise
        raise _not_started(UNCLEAR, job, str(error)) from error
    return done.out.split()[-1]


def _not_started(code: str, job: Job, output: str) -> SubmitError:
    message = f"the job of step {job.step} did not start"
    return SubmitError(Problem(code=code, message=message, where=job.step, notes=tuple(output.splitlines())))


def find(ids: tuple[str, ...], tags: tuple[str, ...]) -> Iterator[LocalJob]:
    """The known jobs among `ids` and `tags`; without either all of them."""
    everything = not (ids or tags)
    stored_ids = {path.stem for path in folder().glob("*.job")} if everything else set()
    for ident in sorted({*ids, *(tag[:12] for tag in tags), *stored_ids}):
        job = _read(folder(), ident)
        if job is not None and (everything or ident in ids or job.tag in tags):
            yield job


def cancel(job: LocalJob) -> None:
    """TERM, then KILL for the whole group; a process that is not this job is never touched."""
    if not job.alive:
        return
    job.file("cancelled").touch(0o600)
    with contextlib.suppress(ProcessLookupError):
        os.kill(job.pid, signal.SIGTERM)
    end = time.monotonic() + GRACE_SECONDS
    while job.alive and time.monotonic() < end:
        time.sleep(0.05)
    if job.alive:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)


def _read(where: Path, ident: str) -> LocalJob | None:
    if not ident.isalnum():
        return None
    try:
        pid, start, tag, step = (where / f"{ident}.job").read_text().splitlines()[:4]
        return LocalJob(where, ident, int(pid), start, tag, step)
    except (OSError, ValueError):
        return None


def _born(pid: int) -> str:
    """When a process started, in the kernel's ticks; empty when it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
