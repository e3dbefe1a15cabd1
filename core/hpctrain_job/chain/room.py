"""Whether there is room for another checkpoint: asked when an attempt begins and when one failed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from hpctrain_job.chain.decision import Cause, Record
from hpctrain_job.resume import Checkpoint

Whole = Callable[[], "list[Checkpoint] | None"]
"""The whole checkpoints, oldest first; None where nobody says how they are named."""

LONGEST = 300.0
"""Seconds for which an attempt waits for room, or a tenth of its time."""
POLL = 5.0


def lack(whole: Whole) -> str:
    """What the disk or a quota has left, where that is too little for another checkpoint as large as the
    newest, said in the job's log; empty where there is room, or nobody knows."""
    try:
        words = _words(whole())
    except OSError:  # a checkpoint that vanishes while it is measured
        return ""
    if words:
        print(f"hpctrain: no room for another checkpoint: {words}", file=sys.stderr)
    return words


def is_lacking_still(whole: Whole, record: Record) -> bool:
    """Whether there is none after some minutes either, where the attempt before failed for want of it: only
    then is it known that a training cannot do without."""
    is_lacking = bool(lack(whole))
    judged = record.attempts[record.judged_from :]
    if not (judged and judged[-1].cause is Cause.FULL):
        return False
    until = time.monotonic() + min(LONGEST, record.terms.time / 10)
    while is_lacking and time.monotonic() < until:
        time.sleep(min(POLL, max(0.0, until - time.monotonic())))
        is_lacking = bool(lack(whole))
    return is_lacking


def _words(whole: list[Checkpoint] | None) -> str:
    from hpctrain_job.downloads import room  # with the network's modules: most askers need no room

    if not whole:
        return ""
    files = (Path(place, name) for place, _, names in os.walk(whole[-1].path) for name in names)
    size = sum(path.lstat().st_size for path in files)
    words = room.lack(whole[-1].path.parent, size)
    return f"{words}, and a checkpoint takes {size / 1e9:.1f} GB" if words else ""
