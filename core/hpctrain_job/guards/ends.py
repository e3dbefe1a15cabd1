"""An attempt that ended inside of its allocation: what it means for the chain, asked and written down."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from hpctrain_job import attempts, exit_codes
from hpctrain_job.chain import decision
from hpctrain_job.files import shared
from hpctrain_job.guards.judgement import AttemptOver

NOTES = "jobs.jsonl"


@dataclass(frozen=True)
class Job:
    """The job that guards belong to."""

    step: attempts.Step
    id: str
    stop_files: tuple[Path, ...]
    ends_at: float
    """Its time limit, in seconds since 1970."""

    @property
    def stop_file(self) -> str:
        """A file by which somebody asks for the end; empty: there is none."""
        return next((str(path) for path in self.stop_files if path.exists()), "")


@dataclass(frozen=True)
class Again:
    """The attempt that follows at once, and what job.sh would do for the end of the one before."""

    nodes: tuple[str, ...]
    written: tuple[decision.Event, ...]
    lines: tuple[str, ...] = ()


def again(job: Job, end: AttemptOver, nodes: tuple[str, ...], signal: str) -> Again | None:
    """Whether the training begins again in its allocation; None: the job ends. Nothing is written yet."""
    step = job.step
    code = exit_codes.HUNG if (step.folder / "hung").exists() else end.code
    why, lost = attempts.explained(step, job.id, code, (signal, ""), end.lost, nodes)
    record = step.record(step.submitted(), job.stop_file)
    now = time.time()
    ended = decision.Ended(
        job.id, now, why, step.newest(), lost, standing=end.standing, seconds_left=job.ends_at - now
    )
    actions = decision.decide(ended, record)
    for action in actions:
        if isinstance(action, decision.Restart):
            began = decision.Began(job.id, now, ended.step, action.nodes, is_inside=True)
            return Again(action.nodes, (ended, began), tuple(attempts.avoid_lines(actions)))
    return None


def write(job: Job, follows: Again, code: int) -> None:
    """Write that one attempt ended and the next began, and take away what belonged to the first."""
    from hpctrain_job.hangs import verdicts

    folder = job.step.folder
    for event in follows.written:
        job.step.add(event)
    note(folder, job.id, "ended", code)
    note(folder, job.id, "began", None)
    verdicts.take_back(folder, job.id)
    (folder / "hung").unlink(missing_ok=True)
    shutil.rmtree(folder / "nodes", ignore_errors=True)
    logs = sorted((job.step.run / "logs").glob(f"{job.step.name}.*"))
    sizes = "".join(f"{path.stat().st_size} {path.name}\n" for path in logs)
    (folder / "log-sizes").write_text(sizes, encoding="utf-8")


def note(folder: Path, job: str, event: str, code: int | None) -> None:
    """A line as `hpc_note` of job.sh writes it: what the run cost."""
    environ: Mapping[str, str] = os.environ
    line = {
        "v": 1,
        "event": event,
        "job": job,
        "attempt": int(environ.get("HPC_ATTEMPT", "0")),
        "nodes": int(environ.get("HPC_NODES", "1")),
        "code": code,
        "at": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    shared.append_line(folder / NOTES, json.dumps(line).encode())
