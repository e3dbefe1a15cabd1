"""Whether a published artefact is still what its manifest says, as `hpc_verify` in publish.sh."""

from __future__ import annotations

from pathlib import Path

from hpctrain_job.tree import digest


def differing(link: Path) -> str:
    """The first file that is not as it was published, or nothing."""
    folder = link.resolve().parent
    manifest = folder / "MANIFEST"
    try:
        rows = manifest.read_text(encoding="utf-8").splitlines()[1:]
    except OSError:
        return manifest.name
    for row in rows:
        size, _, rest = row.partition(" ")
        sha256, _, name = rest.partition("  ")
        file = folder / name
        try:
            same = file.stat().st_size == int(size) and digest(file) == sha256
        except OSError:
            same = False
        if not same:
            return name.removeprefix("content/")
    return ""
