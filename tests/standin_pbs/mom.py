"""One job as a process of this computer, from its start to its end: `python -m tests.standin_pbs.mom ID`."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.standin_pbs import server
from tests.standin_pbs.state import Folder, now, seconds

WHO = pwd.getpwuid(os.getuid()).pw_name


def main(ident: str) -> None:
    """Run the job, wait, end it at its limit, and say how it ended."""
    folder = Folder.of_environment()
    row = folder.read()["jobs"][ident]
    log = Path(row["Output_Path"].partition(":")[2])
    with log.open("a") as out:
        child = subprocess.Popen(
            ["/bin/bash", str(folder.path / f"{ident}.SC")],
            cwd=row["home"],
            env=_environment(folder, ident, row),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        with folder.changing() as state:
            state["jobs"][ident]["session_id"] = child.pid
        late = _wait(folder, ident, child, seconds(row["Resource_List"]["walltime"]), log)
    kill_session(child.pid, signal.SIGKILL)  # what a job leaves running goes with it
    with folder.changing() as state:
        _end(state, ident, child.returncode, late)
    server.schedule(folder)


def _environment(folder: Folder, ident: str, row: dict[str, Any]) -> dict[str, str]:
    _, chunk = row["chunk"]
    nodes = folder.path / f"{ident}.nodes"
    nodes.write_text("".join(f"{node}\n" * chunk.get("mpiprocs", 1) for node in row["on"]))
    given = {str(k): str(v) for k, v in row["Variable_List"].items()}
    return {
        **given,
        "ENVIRONMENT": "BATCH",
        "HOME": row["home"],
        "LOGNAME": WHO,
        "USER": WHO,
        "SHELL": "/bin/bash",
        "PATH": row["path"],  # /etc/profile of a real node; here the commands of the stand-in come first
        "NCPUS": str(chunk.get("ncpus", 1)),
        "OMP_NUM_THREADS": str(chunk.get("ncpus", 1)),
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_JOBCOOKIE": "00000000000000000000000000000000",
        "PBS_JOBDIR": row["home"],
        "PBS_JOBID": ident,
        "PBS_JOBNAME": row["Job_Name"],
        "PBS_MOMPORT": "15003",
        "PBS_NODEFILE": str(nodes),
        "PBS_NODENUM": "0",
        "PBS_QUEUE": row["queue"],
        "PBS_TASKNUM": "1",
        "PBS_STANDIN": str(folder.path),
        "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
    }


def _wait(folder: Folder, ident: str, child: subprocess.Popen[bytes], limit: int, log: Path) -> bool:
    """Until the job is over; whether its time limit ended it."""
    began, said, killed = time.monotonic(), 0.0, False
    while child.poll() is None:
        time.sleep(0.05)
        row, past = folder.read()["jobs"].get(ident, {}), time.monotonic() - began
        ordered = row.get("delete") or row.get("rerun")
        if not said and (past > limit or ordered):
            if not ordered:
                with log.open("a") as out:
                    out.write(f"=>> PBS: job killed: walltime {int(past)} exceeded limit {limit}\n")
            said, killed = time.monotonic(), not ordered
            kill_session(child.pid, signal.SIGTERM)
        if said and time.monotonic() - said > folder.read()["kill_delay"]:
            kill_session(child.pid, signal.SIGKILL)
    return killed


def kill_session(leader: int, number: int) -> None:
    """A signal to every process of a session, whatever its group: PBS reaches the children as well."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            if int(path.read_text().rpartition(")")[2].split()[3]) == leader:
                os.kill(int(path.parent.name), number)


def _end(state: dict[str, Any], ident: str, code: int, late: bool) -> None:
    row = state["jobs"][ident]
    if row.pop("rerun", False):
        row |= {"job_state": "Q", "substate": 10, "mtime": now()}
        return
    status = 256 - code if code < 0 else code
    if row.pop("delete", False):
        server.ended(state, ident, 271, f"terminated by {WHO}@login", 91)
    elif late:
        server.ended(state, ident, -29, "exceeded resource walltime", 93)
    else:
        server.ended(state, ident, status, "finished" if status == 0 else "failed", 92 if status == 0 else 93)


if __name__ == "__main__":
    main(sys.argv[1])
