"""A stand-in for Flux: `flux batch`, `jobs`, `cancel` and `run` as we remember them; jobs are processes.

Its state is a folder, FLUX_STANDIN, with one JSON file for each job. Nodes and cores are not counted: what is
submitted runs as soon as what it depends on has ended.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

OVER = ("CD", "F", "CA")
PASSED = ("PATH", "HOME", "USER", "LANG")
GRACE_SECONDS = 2
Job = dict[str, Any]


def folder() -> Path:
    path = Path(os.environ["FLUX_STANDIN"])
    path.mkdir(parents=True, exist_ok=True)
    return path


def jobs() -> list[Job]:
    return [json.loads(path.read_text()) for path in sorted(folder().glob("*.json"))]


def job_of(ident: str) -> Job | None:
    return next((job for job in jobs() if job["id"] == ident), None)


def write(job: Job, **changes: Any) -> None:
    """A job that somebody has cancelled stays cancelled."""
    path = folder() / f"{job['number']:06d}.json"
    if path.exists() and json.loads(path.read_text())["state"] == "CA":
        changes["state"] = "CA"
    job.update(changes)
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps(job))
    fresh.replace(path)


def fail(program: str, message: str) -> NoReturn:
    sys.exit(f"flux-{program}: ERROR: {message}")


def split(words: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Options with their values, and the command behind them."""
    count = next((n for n, word in enumerate(words) if not word.startswith("-")), len(words))
    options = [word.lstrip("-").partition("=") for word in words[:count]]
    return [(key, value) for key, _, value in options], list(words[count:])


def batch(words: Sequence[str]) -> None:
    options, command = split(words)
    lines = Path(command[0]).read_text().splitlines()
    directives = [line.removeprefix("# flux: ") for line in lines if line.startswith("# flux: ")]
    every = [*split(directives)[0], *options]
    asked = dict(every)
    if asked.get("queue") == "nowhere":
        fail("batch", "[Errno 22] Invalid queue 'nowhere' specified")
    number = len(jobs()) + 1
    job: Job = {"number": number, "id": f"ƒ{number}oCkYNT", "name": asked["job-name"], "state": "D"}
    job |= {"queue": asked.get("queue", "pbatch"), "nodes": asked["nodes"], "cwd": str(Path.cwd())}
    job |= {"after": [value for key, value in every if key == "dependency"], "command": command}
    job |= {"limit": seconds(asked["time-limit"]), "signal": asked.get("signal", ""), "log": asked["output"]}
    write(job)
    print(job["id"], flush=True)
    if os.fork() == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        live(job)
        os._exit(0)


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


def live(job: Job) -> None:
    """The whole life of a job."""
    for edge in job["after"]:
        kind, _, ident = edge.partition(":")
        while (before := job_of(ident)) and before["state"] not in OVER:
            time.sleep(0.1)
        if kind == "afterok" and not (before and before["state"] == "CD"):
            return write(job, state="F")
    if (now := job_of(job["id"])) is None or now["state"] == "CA":
        return None
    environ = {key: os.environ[key] for key in PASSED if key in os.environ}
    with Path(job["cwd"], job["log"]).open("ab") as log:
        program = subprocess.Popen(
            ["bash", *job["command"]],
            cwd=job["cwd"],
            env={**environ, "FLUX_JOB_ID": job["id"]},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    write(job, state="R")
    code = watched(job, program)
    return write(job, state="F" if code else "CD")


def watched(job: Job, program: subprocess.Popen[bytes]) -> int:
    """Warn it before its time limit, end it then, or when it is cancelled; its exit code."""
    began, warning = time.monotonic(), re.fullmatch(r"(\w+)@(\d+)s", job["signal"])
    while program.poll() is None:
        time.sleep(0.1)
        age = time.monotonic() - began
        if warning and age > job["limit"] - int(warning[2]):
            program.send_signal(signal.Signals[warning[1]])
            warning = None
        cancelled = (now := job_of(job["id"])) is not None and now["state"] == "CA"
        if cancelled or age > job["limit"]:
            end(program)
    return program.returncode


def end(program: subprocess.Popen[bytes]) -> None:
    os.killpg(program.pid, signal.SIGTERM)
    try:
        program.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()


def listing(words: Sequence[str]) -> None:
    wanted = next((word.partition("=")[2] for word in words if word.startswith("--name=")), "")
    for job in jobs():
        if wanted and job["name"] == wanted:
            print(job["id"])
        elif not wanted:
            state = "S" if job["state"] == "D" and not job["after"] else job["state"]
            print(job["id"], job["name"], state, job["queue"], job["nodes"])


def cancel(words: Sequence[str]) -> None:
    for ident in words:
        job = job_of(ident)
        if job is None:
            fail("cancel", f"{ident}: unknown job id")
        if job["state"] in OVER:
            fail("cancel", f"{ident}: job is inactive")
        write(job, state="CA")


def run(words: Sequence[str]) -> None:
    """Start the tasks, hand signals on, and end them all when one fails."""
    options, command = split(words)
    asked = dict(options)
    count, nodes = int(asked["ntasks"]), int(asked["nodes"])
    tasks = []
    for rank in range(count):
        numbers = {"FLUX_TASK_RANK": str(rank), "FLUX_TASK_LOCAL_ID": str(rank % (count // nodes))}
        tasks.append(subprocess.Popen(command, env={**os.environ, **numbers}))

    def hand_on(number: int, _: object) -> None:
        for task in tasks:
            task.send_signal(number)

    signal.signal(signal.SIGUSR1, hand_on)
    signal.signal(signal.SIGTERM, hand_on)
    first = 0
    while any(task.poll() is None for task in tasks):
        time.sleep(0.05)
        failed = next((task.returncode for task in tasks if task.poll()), 0)
        if failed and not first:
            first = failed
            for task in tasks:
                task.terminate()
    code = first or next((task.returncode for task in tasks if task.returncode), 0)
    sys.exit(128 - code if code < 0 else code)


if __name__ == "__main__":
    {"batch": batch, "jobs": listing, "cancel": cancel, "run": run}[sys.argv[1]](sys.argv[2:])
