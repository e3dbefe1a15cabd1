"""Whether a published artifact is still what its manifest says, as `hpc_verify` in publish.sh."""

from __future__ import annotations

import os
import re
from pathlib import Path

from hpctrain_job.files import documents, trust
from hpctrain_job.tree import digest

_ROW = re.compile(rb"(?P<size>\d+) (?P<escaped>\\?)(?P<sum>[0-9a-f]{64})  (?P<name>.*)", re.DOTALL)


def differing(link: Path) -> str:
    """The first file that is not as it was published, or nothing."""
    folder = link.resolve().parent
    manifest = folder / "MANIFEST"
    try:
        rows = trust.rows(documents.whole(manifest), link.name)
    except (OSError, ValueError):
        return manifest.name
    if rows is None or (not rows and trust.has_files(str(folder / "content"))):
        return manifest.name
    for row in rows:
        match = _ROW.match(row)
        assert match is not None, row
        name = _unescaped(match["name"]) if match["escaped"] else match["name"]
        file = folder / os.fsdecode(name)
        try:
            is_intact = file.stat().st_size == int(match["size"]) and digest(file) == match["sum"].decode()
        except OSError:
            is_intact = False
        if not is_intact:
            return os.fsdecode(name).removeprefix("content/")
    return ""


def _unescaped(name: bytes) -> bytes:
    """A name with a line feed or a backslash, from the way in which sha256sum writes it."""
    letters = {b"n": b"\n", b"r": b"\r"}
    return re.sub(rb"\\(.)", lambda match: letters.get(match[1], match[1]), name)
