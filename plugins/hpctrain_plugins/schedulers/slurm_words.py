"""Slurm's words in ours: states, reasons and compressed lists of hosts."""

from __future__ import annotations

import itertools
import math
import re

from hpctrain.plugin import State

STATES = {
    "PENDING": State.QUEUED,
    "CONFIGURING": State.QUEUED,
    "REQUEUED": State.QUEUED,
    "REQUEUE_FED": State.QUEUED,
    "REQUEUE_HOLD": State.QUEUED,
    "RESV_DEL_HOLD": State.QUEUED,
    "SPECIAL_EXIT": State.QUEUED,
    "RUNNING": State.RUNNING,
    "COMPLETING": State.RUNNING,
    "RESIZING": State.RUNNING,
    "SIGNALING": State.RUNNING,
    "STAGE_OUT": State.RUNNING,
    "STOPPED": State.RUNNING,
    "SUSPENDED": State.RUNNING,
    "COMPLETED": State.DONE,
    "BOOT_FAIL": State.FAILED,
    "DEADLINE": State.FAILED,
    "FAILED": State.FAILED,
    "NODE_FAIL": State.FAILED,
    "OUT_OF_MEMORY": State.FAILED,
    "PREEMPTED": State.FAILED,
    "TIMEOUT": State.FAILED,
    "CANCELLED": State.CANCELLED,
    "REVOKED": State.CANCELLED,
}

REASONS = {
    "AssocGrpBillingMinutes": "the project's budget is used up",
    "AssocGrpCPUMinutesLimit": "the project's budget is used up",
    "AssocGrpGRES": "your project's GPUs are all in use",
    "AssocGrpGRESMinutes": "the project's budget is used up, or reserved by jobs that run",
    "AssocMaxJobsLimit": "your project runs as many jobs as it may",
    "BeginTime": "it may not start yet, as after a requeue",
    "BadConstraints": "no node has what it asks for",
    "BurstBufferStageIn": "its data is brought first",
    "DEADLINE": "its deadline passed",
    "Dependency": "it waits for an earlier step",
    "DependencyNeverSatisfied": "the step it waited for ended badly",
    "JobHeldAdmin": "an administrator holds it",
    "JobHeldUser": "you hold it",
    "JobHoldMaxRequeue": "it was started again too often: cancel it, then hpctrain continue",
    "Licenses": "it waits for a licence",
    "NODE_FAIL": "a node failed",
    "NodeDown": "a node it needs is down",
    "NonZeroExitCode": "its commands failed",
    "OUT_OF_MEMORY": "it used more memory than it asked for",
    "OutOfMemory": "it used more memory than it asked for",
    "PartitionDown": "the partition is closed",
    "PartitionNodeLimit": "it asks for more nodes than the partition gives",
    "PartitionTimeLimit": "it asks for more time than the partition gives",
    "PREEMPTED": "a job of higher priority took its nodes",
    "Priority": "jobs of higher priority come first",
    "QOSGrpGRES": "the GPUs of this quality of service are all in use",
    "QOSGrpNodeLimit": "the nodes of this quality of service are all in use",
    "QOSMaxCpuPerUserLimit": "your jobs hold as many cores as this quality of service allows",
    "QOSMaxGRESPerAccount": "your project holds as many GPUs as this quality of service allows",
    "QOSMaxGRESPerUser": "you hold as many GPUs as this quality of service allows",
    "QOSMaxJobsPerUserLimit": "you run as many jobs as this quality of service allows",
    "QOSMaxMemoryPerUser": "your jobs hold as much memory as this quality of service allows",
    "QOSMaxSubmitJobPerUserLimit": "you have as many jobs queued as this quality of service allows",
    "QOSMaxWallDurationPerJobLimit": "it asks for more time than this quality of service gives",
    "ReqNodeNotAvail": "a node it needs is reserved or down",
    "Reservation": "its reservation has not begun",
    "Resources": "it is next and waits for free nodes",
    "TIMEOUT": "it ran into its time limit",
    "TimeLimit": "it ran into its time limit",
}

_SPAN = re.compile(r"([0-9]{1,9})-([0-9]{1,9})\Z")
_BRACKETS = re.compile(r"\[([^\]]*)\]?")
MOST_HOSTS = 100_000
"""Of one job: ten times the largest machine."""
MOST_BRACKETS = 1000
LONGEST_LIST = 200_000
"""Characters: what Slurm writes of 10,000 nodes that lie apart is a third of it."""


def state(word: str) -> State:
    """Our state for Slurm's; what we do not know is unknown, never done."""
    return STATES.get(word.split()[0] if word.split() else "", State.UNKNOWN)


def queue_options(partition: str, qos: str) -> tuple[str, ...]:
    """Where a job is queued, in the words that ask for it."""
    return f"--partition={partition}", f"--qos={qos}"


def reason(word: str, state_word: str = "") -> str:
    """Why, in our words, with Slurm's own in brackets; empty when there is nothing to say."""
    for code in (word.split(",")[0].strip(" ()"), state_word.split()[0] if state_word else ""):
        if code in REASONS:
            return f"{REASONS[code]} ({code})"
    return "" if word in ("", "None", "(null)") else word


def hosts(text: str) -> tuple[str, ...]:
    """`n[1-2,5],x3` as names, without asking the controller; as it stands where that are more than exist."""
    if len(text) > LONGEST_LIST or text.count("[") > MOST_BRACKETS:
        return (text[:100],)
    names: list[str] = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        # Literal text and the inside of brackets, in turns.
        pieces = [piece.split(",") if n % 2 else [piece] for n, piece in enumerate(_BRACKETS.split(part))]
        if len(names) + math.prod(sum(map(_size, spans)) for spans in pieces) > MOST_HOSTS:
            return (text[:100],)
        choices = ([name for span in spans for name in _span(span)] for spans in pieces)
        names += map("".join, itertools.product(*choices))
    return tuple(names)


def _size(span: str) -> int:
    """How many names a span stands for, before any is made."""
    match = _SPAN.match(span)
    return max(0, int(match[2]) - int(match[1]) + 1) if match else 1


def _span(text: str) -> list[str]:
    match = _SPAN.match(text)
    if match is None:
        return [text]
    low, high = match.groups()
    return [str(number).zfill(len(low)) for number in range(int(low), int(high) + 1)]
