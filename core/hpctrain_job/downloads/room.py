"""Whether there is room for what is to come: on the file system, and under your quotas of it.

What `df` shows of Lustre is the room of all its users. What a user, a group or a project has left there, its
own `lfs` says.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from hpctrain_job import exit_codes
from hpctrain_job.downloads.web import Failed

SECONDS = 20
"""How long a file system may take to say what a quota has left; without an answer none is known."""


class NoSpace(Failed):
    """The file system has too little space for what will be written."""

    exit_code = exit_codes.NO_ROOM


def free_or_fail(folder: Path, needed: int, *, quota_gb: float | None = None) -> None:
    """Stop before the first byte when the disk, a quota or the site's limit cannot hold `needed` more."""
    if quota_gb is not None and needed / 1e9 > quota_gb:
        raise NoSpace(
            f"{needed / 1e9:.1f} GB are still to be written, and the site's quota there is {quota_gb:,g} GB"
        )
    if words := lack(folder, needed):
        raise NoSpace(f"{words}, {needed / 1e9:.1f} GB are still to be written")


def lack(folder: Path, needed: int) -> str:
    """Where the disk or a quota has too little left for `needed` bytes, and what it has; else nothing."""
    free, where = min([(shutil.disk_usage(folder).free, str(folder)), *quotas(folder)])
    return f"{where} has {free / 1e9:.1f} GB left" if free < needed else ""


def quotas(folder: Path) -> Iterator[tuple[int, str]]:
    """Bytes left under each Lustre quota that counts in `folder`, and whose it is."""
    if not shutil.which("lfs"):
        return
    match = re.match(r"\s*(\d+)", _run_lfs("project", "-d", str(folder)))
    owners = [("-u", str(os.getuid()), "user"), ("-g", str(folder.stat().st_gid), "group")]
    if match and match[1] != "0":
        owners.append(("-p", match[1], "project"))
    for option, number, kind in owners:
        left = _left(_run_lfs("quota", "-q", option, number, str(folder)))
        if left is not None:
            yield left, f"the quota of {kind} {number} at {folder}"


def _left(answer: str) -> int | None:
    """From `/lustre  used soft hard grace files …` in KiB: an asterisk means that a limit is passed, 0 none.
    The numbers stand on a line of their own behind a long path."""
    numbers = re.search(r"(?:^|\s)(\d+)\*?\s+(\d+)\s+(\d+)\s+\S+\s+\d+", answer)
    if not numbers:
        return None
    used, soft, hard = map(int, numbers.groups())
    limit = hard or soft
    return max(0, limit - used) * 1024 if limit else None


def _run_lfs(*words: str) -> str:
    try:
        done = subprocess.run(
            ("lfs", *words), capture_output=True, text=True, timeout=SECONDS, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else done.stdout
