"""The words of PBS in ours: states, reasons, exit statuses, hosts and times."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from hpctrain.plugin import State

STATES = {
    "Q": State.QUEUED,
    "H": State.QUEUED,
    "W": State.QUEUED,
    "T": State.QUEUED,
    "B": State.RUNNING,
    "R": State.RUNNING,
    "E": State.RUNNING,
    "S": State.RUNNING,
    "U": State.RUNNING,
}
"""All but F and X, which say that a job is over, and M, which says that another server has it."""

DELETED = 91
"""The substate of a job that is over because somebody deleted it."""

COMMENTS = (
    (r"Can Never Run", "no node will ever have what it asks for"),
    (r"User has reached .*running job limit", "you run as many jobs as this queue allows"),
    (r"per-user limit reached", "you use as much as this queue allows one user"),
    (r"Insufficient amount of|Not enough (?:free|total)|No available resources", "it waits for free nodes"),
    (r"too many failed attempts", "no node could start it, and PBS gave up: ask the site"),
    (r"held by", "it is held"),
)
ENDS = {
    -29: "it ran into its time limit",
    -28: "it used more CPU time than it asked for",
    -27: "it used more memory than it asked for",
    -20: "a node failed",
    -17: "the site refused to start it on its node",
    -16: "the site refused to start it on its node",
    -3: "its node could not start it",
    -2: "its node could not start it",
    -1: "its node could not start it",
}
"""Exit statuses below zero, by which PBS says that it ended or never began the job itself."""
_SIGNAL = 256


def state(row: Mapping[str, Any]) -> State:
    """Our state for a job's row; what we do not know is unknown, never done."""
    letter = row.get("job_state")
    if letter not in ("F", "X"):
        return STATES.get(str(letter), State.UNKNOWN)
    status = row.get("Exit_status")
    if row.get("substate") == DELETED or (letter == "F" and status is None):
        return State.CANCELLED  # without a status it never ran: it was deleted, or what it waited for failed
    if status is None:  # X, a job of an array that others still are a part of
        return State.UNKNOWN
    return State.DONE if status == 0 else State.FAILED


def sub_jobs(row: Mapping[str, Any]) -> list[State]:
    """The states of an array's jobs that run or wait, a job each; none for what is no array.

    PBS lists an array as one job of one sub-job's size, and its limits count sub-jobs.
    """
    numbers = dict(re.findall(r"(\w+):(\d{1,9})", str(row.get("array_state_count", "")), re.ASCII))
    running = sum(int(numbers.get(name, 0)) for name in ("Running", "Exiting"))
    return [State.RUNNING] * running + [State.QUEUED] * int(numbers.get("Queued", 0))


def exit_code(row: Mapping[str, Any]) -> int | None:
    """The exit code as a shell says it; PBS adds a signal to 256, and speaks for itself below zero."""
    status = row.get("Exit_status")
    if not isinstance(status, int) or status < 0:
        return None
    return 128 + status - _SIGNAL if status > _SIGNAL else status


def is_stuck(row: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whether a job waits for one that was deleted before it ran: PBS then holds it for ever."""
    if row.get("job_state") != "H":
        return False
    targets = re.findall(r":(\d[^:@,]*)", str(row.get("depend", "")))
    ended = (others.get(target, {}) for target in targets)
    return any(
        t.get("job_state") == "F" and t.get("substate") == DELETED and not t.get("stime") for t in ended
    )


def reason(row: Mapping[str, Any]) -> str:
    """Why a job waits or ended, in our words, those of PBS in brackets; empty when nothing is to say."""
    comment = str(row.get("comment", "")).strip()
    letter, status = row.get("job_state"), row.get("Exit_status")
    if letter in ("F", "X"):
        if row.get("substate") == DELETED:
            return "" if row.get("stime") else "it was cancelled before it began"
        if status is None:
            return "the step it waited for ended badly" if row.get("depend") else ""
        return f"{ENDS[status]} (Exit_status {status})" if status in ENDS else ""
    if letter == "H" and "depend" in row and "s" in str(row.get("Hold_Types", "")):
        return "it waits for an earlier step"
    if letter in ("Q", "H", "W"):
        ours = next((words for pattern, words in COMMENTS if re.search(pattern, comment)), "")
        return f"{ours} ({comment})" if ours else comment.removeprefix("Not Running: ")
    return "it is suspended" if letter in ("S", "U") else ""


def hosts(text: str) -> tuple[str, ...]:
    """The hosts of `node1/0*4+node2/0*4`, each once."""
    return tuple(dict.fromkeys(part.partition("/")[0] for part in text.split("+") if part))


def seconds(text: object) -> int | None:
    """`02:03:04`, hours beyond a day included, or a number of seconds."""
    parts = str(text).split(":")
    if len(parts) > 3 or not all(re.fullmatch("[0-9]{1,9}", part) for part in parts):
        return None
    total = 0
    for part in parts:
        total = total * 60 + int(part)
    return total


def moment(text: object) -> float | None:
    """The time of `Sun Nov 22 20:02:03 2026`, which qstat writes in this machine's own time zone."""
    try:
        return time.mktime(time.strptime(str(text), "%a %b %d %H:%M:%S %Y"))
    except (ValueError, OverflowError):
        return None


def iso(text: object) -> str:
    """The same as ISO; empty when it is no time."""
    at = moment(text)
    return "" if at is None else time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(at))
