"""A folder that only root may read, for all users of twins: a layer of changed modes, no copy."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.twin.rootfs import CACHE

LIMIT = 120
CHANGE = """
set -euo pipefail
mkdir upper work seen
mount -t overlay -o "lowerdir=$1,upperdir=upper,workdir=work,metacopy=on" twin seen
chmod -R a+rX seen
umount seen
"""


def private(folder: str) -> bool:
    """Whether other users may not enter."""
    return not Path(folder).stat().st_mode & 0o001


def layer(folder: str) -> str:
    """What is laid over `folder` so that everybody may read it, kept as long as the folder is that one;
    empty where the cache's file system takes no such layers."""
    inside = (Path(folder), *Path(folder).glob("lib/python3*/site-packages"))  # where packages come and go
    name = f"{os.path.realpath(folder)} {[(p.stat().st_ino, p.stat().st_mtime_ns) for p in inside]}"
    path = CACHE / f"open-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "open.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists() and not _made(folder, path):
            return ""
    return str(path / "upper")


def _made(folder: str, path: Path) -> bool:
    new = path.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    argv = ("unshare", "--mount", "--propagation", "private", "bash", "-c", CHANGE, "_", folder)
    done = subprocess.run(argv, cwd=new, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode:
        shutil.rmtree(new, ignore_errors=True)
        return False
    new.rename(path)
    return True
