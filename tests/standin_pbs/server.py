"""What the server and its scheduler do: judge a job, give it nodes, end it, let others go that waited."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.standin_pbs.state import NODE, NODES, Folder, now, seconds

State = dict[str, Any]
HOLDS = ("u", "o", "s")


def judge(state: State, row: dict[str, Any], user: str) -> tuple[int, str] | None:
    """Why the server refuses a job: exit code and words of qsub; None when it takes it."""
    queue = state["queues"].get(row["queue"])
    if queue is None:
        return 170, "Unknown queue"
    asked = row["Resource_List"]
    if seconds(asked["walltime"]) > queue.get("walltime", 10**9) or asked["nodect"] > queue.get("nodect", 99):
        return 188, "Job violates queue and/or server resource limits"
    mine = [r for r in state["jobs"].values() if r["queue"] == row["queue"] and r["job_state"] != "F"]
    if len([r for r in mine if owner(r) == user]) >= queue.get("max_queued", 10**9):
        return 38, "would exceed queue generic's per-user limit"
    return None


def owner(row: dict[str, Any]) -> str:
    return str(row["Job_Owner"]).partition("@")[0]


def accept(state: State, row: dict[str, Any]) -> str:
    """Queue a job, held where it waits for others; its id."""
    ident = f"{state['next']}.pbs"
    state["next"] += 1
    state["jobs"][ident] = row
    if row.get("depend"):
        row |= {"Hold_Types": "s", "job_state": "H", "substate": 22}
        for kind, other in edges(row):
            target = state["jobs"].get(other)
            if target is None:
                _drop(state, ident)
                break
            if target["job_state"] == "F":
                _judge_edge(state, ident, kind, other, target)
    return ident


def edges(row: dict[str, Any]) -> list[tuple[str, str]]:
    """What a job waits for, one by one; several lists of one kind add up."""
    found = []
    for part in filter(None, str(row.get("depend", "")).split(",")):
        kind, *ids = part.split(":")
        found += [(kind, ident.partition("@")[0]) for ident in ids]
    return found


def _judge_edge(state: State, ident: str, kind: str, other: str, target: dict[str, Any]) -> None:
    row = state["jobs"].get(ident)
    if row is None or row["job_state"] != "H":
        return
    ok = target.get("Exit_status") == 0
    if kind == "afterany" or (kind == "afterok") == ok:
        left = [(k, o) for k, o in edges(row) if o != other]
        row["depend"] = ",".join(f"{k}:{o}@pbs" for k, o in left)
        if not left:
            del row["depend"]
            release(row, "s")
    else:
        _drop(state, ident)


def _drop(state: State, ident: str) -> None:
    """A job whose dependency cannot hold is over, without a word, and so are those behind it."""
    row = state["jobs"][ident]
    row |= {"job_state": "F", "substate": 92}
    if not state["history"]:
        del state["jobs"][ident]
    settle(state, ident, row)


def settle(state: State, ident: str, row: dict[str, Any]) -> None:
    """Tell the jobs that waited for one which is over."""
    for other, waiting in list(state["jobs"].items()):
        for kind, target in edges(waiting):
            if target == ident:
                _judge_edge(state, other, kind, ident, row)


def release(row: dict[str, Any], hold: str) -> None:
    """Take one hold away; a job without any is queued."""
    left = "".join(h for h in row["Hold_Types"] if h != hold and h in HOLDS)
    row["Hold_Types"] = left or "n"
    if not left and row["job_state"] == "H":
        row |= {"job_state": "Q", "substate": 10}


def ended(state: State, ident: str, status: int, how: str, substate: int) -> None:
    """A job that ran is over."""
    row = state["jobs"][ident]
    row |= {"job_state": "F", "substate": substate, "Exit_status": status, "Stageout_status": 1}
    row |= {"obittime": now(), "mtime": now(), "comment": f"{row['comment']} and {how}"}
    if not state["history"]:
        del state["jobs"][ident]
    settle(state, ident, row)


def schedule(folder: Folder) -> None:
    """Start every queued job that fits."""
    start = []
    with folder.changing() as state:
        for ident, row in state["jobs"].items():
            if row["job_state"] == "Q":
                nodes, why = _fit(state, row)
                if nodes:
                    _run(row, nodes)
                    start.append(ident)
                else:
                    row["comment"] = why
    for ident in start:
        subprocess.Popen(
            [sys.executable, "-m", "tests.standin_pbs.mom", ident],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(folder.path / "mom.log").open("a"),
            start_new_session=True,
        )


def _fit(state: State, row: dict[str, Any]) -> tuple[list[str], str]:
    queue = state["queues"][row["queue"]]
    running = [r for r in state["jobs"].values() if r["job_state"] in ("R", "E")]
    same = [r for r in running if r["queue"] == row["queue"] and owner(r) == owner(row)]
    if len(same) >= queue.get("max_run", 99):
        return [], f"Not Running: User has reached queue {row['queue']} running job limit."
    count, chunk = row["chunk"]
    if count > len(NODES):
        return [], "Can Never Run: Not enough total nodes available"
    free = {node: dict(NODE) for node in NODES}
    for other in running:
        for node in other["on"]:
            for name, value in other["chunk"][1].items():
                if name in NODE:
                    free[node][name] -= value
    fitting = [n for n in NODES if all(free[n][k] >= chunk.get(k, 0) for k in NODE)]
    if len(fitting) < count:
        return [], "Not Running: Not enough free nodes available"
    return fitting[:count], ""


def _run(row: dict[str, Any], nodes: list[str]) -> None:
    cores = row["chunk"][1].get("ncpus", 1)
    vnodes = "+".join(f"({node}:ncpus={cores})" for node in nodes)
    row |= {"job_state": "R", "substate": 42, "on": nodes, "stime": now(), "exec_vnode": vnodes}
    row |= {
        "exec_host": "+".join(f"{node}/0*{cores}" for node in nodes),
        "run_count": row.get("run_count", 0) + 1,
    }
    row["comment"] = f"Job run at {now()[:-8]} on {vnodes}"
