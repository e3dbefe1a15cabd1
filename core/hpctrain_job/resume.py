"""Which checkpoint to go on from: the newest that is complete and that its manifest confirms.

A checkpoint's layout is data: a regular expression with a group `step` for the folder's name, and
the file that is written last. The manifest is the one of published artifacts: a head, then size, digest and
path of each file.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from hpctrain_job import fence
from hpctrain_job.files import documents

MANIFEST = "MANIFEST"
_HEAD = "# hpctrain manifest 1"
_LINE = re.compile(r"(?P<size>[0-9]{1,18}) (?P<digest>[0-9a-f]{64})  (?P<path>.+)")
_BLOCK = 1 << 20
READERS = 16
"""The most files that are read at once: one thread hashes about 1 GB/s, a shared disk gives several."""
CHECKED = "HPC_CHECKED"
"""Says to ranks that the job, before it started them, read every byte of the newest checkpoint."""


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint and the step after which it was taken."""

    path: Path
    step: int


def complete(folder: Path, name: str, last: str) -> list[Checkpoint]:
    """The complete checkpoints below `folder`, oldest first; `last` is the file written last."""
    pattern = re.compile(name)
    checkpoints = []
    for entry in folder.iterdir() if folder.is_dir() else ():
        match = pattern.fullmatch(entry.name)
        if match and entry.is_dir() and (not last or (entry / last).is_file()):
            checkpoints.append(Checkpoint(entry, int(match["step"])))
    return sorted(checkpoints, key=lambda checkpoint: checkpoint.step)


def newest(
    folder: Path, name: str, last: str, say: Callable[[str], object] = print, *, contents: bool = True
) -> Checkpoint | None:
    """The newest complete checkpoint that its manifest confirms; `say` hears of those passed over."""
    for checkpoint in reversed(complete(folder, name, last)):
        fault = damage(checkpoint.path, contents=contents)
        if not fault:
            return checkpoint
        say(f"{checkpoint.path} is skipped: {fault}")
    return None


def is_checked() -> bool:
    """Whether this job has read the newest checkpoint already: a thousand ranks need not read it again."""
    return os.environ.get(CHECKED) == "1"


def write_manifest(folder: Path) -> None:
    """Write the manifest of everything below `folder`, visible only when it is whole; Fenced where another
    attempt trains by now."""
    fence.check()
    paths = list(_files(folder))
    lines = [
        f"{path.stat().st_size} {digest}  {path.relative_to(folder)}\n"
        for path, digest in zip(paths, _digests(paths), strict=True)
    ]
    fresh = folder / f".{MANIFEST}.{os.getpid()}"
    with fresh.open("w", encoding="utf-8") as file:
        file.writelines([f"{_HEAD}\n", *lines])
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(folder / MANIFEST)


def damage(folder: Path, *, contents: bool = True) -> str:
    """What contradicts the manifest, or nothing; a folder without one has nothing to contradict.

    Without `contents` no file is read: each only has to be there with its size.
    """
    try:
        lines = documents.text(folder / MANIFEST).splitlines()
    except FileNotFoundError:
        return ""
    except ValueError:
        return "its manifest is no text, or too long for one"
    if lines[:1] != [_HEAD]:
        return "its manifest is cut or of another version"
    fault = next((fault for line in lines[1:] if (fault := _fault(folder, line))), "")
    return fault or (_changed(folder, lines[1:]) if contents else "")


def _fault(folder: Path, line: str) -> str:
    """What contradicts one line of a manifest without reading its file."""
    match = _LINE.fullmatch(line)
    if match is None:
        return "its manifest has an empty line"
    path = folder / match["path"]
    if not path.is_file():
        return f"{match['path']} is missing"
    if path.stat().st_size != int(match["size"]):
        return f"{match['path']} has {path.stat().st_size} bytes, not {match['size']}"
    return ""


def _changed(folder: Path, lines: Iterable[str]) -> str:
    """The first file, in the order of the manifest, whose bytes are others."""
    matches = [match for line in lines if (match := _LINE.fullmatch(line))]
    digests = _digests(folder / match["path"] for match in matches)
    wrong = (
        match["path"] for match, digest in zip(matches, digests, strict=True) if digest != match["digest"]
    )
    return next((f"{path} is not what was written" for path in wrong), "")


def _files(folder: Path) -> Iterator[Path]:
    return (
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.lstrip(".").startswith(MANIFEST)
    )


def _digests(paths: Iterable[Path]) -> list[str]:
    """Of several files at once: hashing leaves the interpreter to others."""
    with ThreadPoolExecutor(min(READERS, len(os.sched_getaffinity(0)))) as pool:
        return list(pool.map(_digest, paths))


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
