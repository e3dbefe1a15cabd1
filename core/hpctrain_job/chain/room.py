"""Whether there is room for another checkpoint: asked when an attempt begins and when one failed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hpctrain_job.chain.decision import Cause

if TYPE_CHECKING:
    from hpctrain_job.attempts import Step

LONGEST = 300.0
"""Seconds for which an attempt waits for room, or a tenth of its time."""
POLL = 5.0


def lack(step: Step) -> str:
    """What the disk or a quota has left, where that is too little for another checkpoint as large as the
    newest, said in the job's log; empty where there is room, or nobody knows."""
    try:
        words = _words(step)
    except OSError:  # a checkpoint that vanishes while it is measured
        return ""
    if words:
        print(f"hpctrain: no room for another checkpoint: {words}", file=sys.stderr)
    return words


def is_lacking_still(step: Step) -> bool:
    """Whether there is none after some minutes either, where the attempt before failed for want of it: only
    then is it known that a training cannot do without."""
    is_lacking, record = bool(lack(step)), step.record()
    judged = record.attempts[record.judged_from :]
    if not (judged and judged[-1].cause is Cause.FULL):
        return False
    until = time.monotonic() + min(LONGEST, record.terms.time / 10)
    while is_lacking and time.monotonic() < until:
        time.sleep(min(POLL, max(0.0, until - time.monotonic())))
        is_lacking = bool(lack(step))
    return is_lacking


def _words(step: Step) -> str:
    from hpctrain_job.downloads import room  # with the network's modules: most askers need no room

    whole = step.whole()
    if not whole:
        return ""
    files = (Path(place, name) for place, _, names in os.walk(whole[-1].path) for name in names)
    size = sum(path.lstat().st_size for path in files)
    words = room.lack(whole[-1].path.parent, size)
    return f"{words}, and a checkpoint takes {size / 1e9:.1f} GB" if words else ""
