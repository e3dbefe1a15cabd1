"""Whether what was staged is all that a job without network will open: asked before the queue.

`python -m hpctrain_job.staged NAME=KIND:PATH ...`. A file that was purged since, a shard that a pattern left
out, weights cut short, code that lies in another repository: each makes a library ask the hub, or fail, in
the job. Nothing is imported and nothing is run: files are read as those libraries look for them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hpctrain_job import exit_codes
from hpctrain_job.downloads.web import Failed
from hpctrain_job.fetch import guarded
from hpctrain_job.files import documents

POINTER = b"version https://git-lfs.github.com/spec/"
NO_DATA = (".md", ".gitattributes", ".gitignore", ".py", ".yaml", ".yml", ".png", ".svg")
"""What dataset repositories carry that no library reads rows from."""
REMOTE = ("config.json", "tokenizer_config.json", "processor_config.json")
HEADER_MOST = 100 << 20
"""The longest header that the safetensors library itself accepts."""


class NotStaged(Failed):
    """Something that the job would look for is not here."""

    exit_code = exit_codes.ABSENT


def faults(kind: str, path: Path) -> Iterator[str]:
    """Everything that a job without network would miss in one asset."""
    if not path.exists():
        yield f"{path} is not there"
        return
    yield from _published(path)
    if path.is_dir() and kind in ("model", "dataset"):
        yield from _pointers(path)
        yield from _model(path) if kind == "model" else _dataset(path)


def _published(path: Path) -> Iterator[str]:
    """Files that are no longer as long as when they were published; their digests would take minutes."""
    folder = path.resolve().parent
    try:
        rows = documents.text(folder / "MANIFEST").splitlines()[1:]
    except (OSError, ValueError):
        yield f"{path} has no manifest"
        return
    for row in rows:
        size, _, entry = row.partition(" ")
        name = entry.partition("  ")[2]
        label = name.removeprefix("content/")
        file = folder / name
        if not file.is_file():
            yield f"{label} was published and is gone"
        elif str(file.stat().st_size) != size:
            yield f"{label} has {file.stat().st_size} bytes, {size[:20]} were published"


def _pointers(folder: Path) -> Iterator[str]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.stat().st_size < 1024 and file.read_bytes().startswith(POINTER):
            yield f"{file.relative_to(folder)} is a pointer of git-lfs, its content was not fetched"


def _model(folder: Path) -> Iterator[str]:
    weights = sorted(folder.glob("*.safetensors"))
    indexes = sorted(folder.glob("*.index.json"))
    configs = (folder / "config.json", folder / "adapter_config.json")
    if (weights or indexes) and not any(file.is_file() for file in configs):
        yield "there are weights and no config.json"
    for index in indexes:
        shards = _read(index).get("weight_map")
        for shard in sorted(set(shards.values())) if isinstance(shards, dict) else ():
            if not (folder / shard).is_file():
                yield f"{index.name} names {shard}, which is not there"
    for file in weights:
        if fault := _cut(file):
            yield f"{file.name} {fault}"
    for name in REMOTE:
        yield from _code(folder, name)


def _cut(file: Path) -> str:
    """What is wrong with the length of a safetensors file, or nothing."""
    size = file.stat().st_size
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        if not 2 <= length <= min(HEADER_MOST, size - 8):
            return "is not a complete safetensors file"
        try:
            header = documents.parse(opened.read(length))
            ends = [row["data_offsets"][1] for name, row in header.items() if name != "__metadata__"]
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            return "is not a complete safetensors file"
    whole = 8 + length + max(ends, default=0)
    return "" if size == whole else f"has {size:,} bytes, its header says {whole:,}"


def _code(folder: Path, name: str) -> Iterator[str]:
    """Classes of the repository's own: each names a file beside it, or one of another repository."""
    mapped = _read(folder / name).get("auto_map")
    for reference in _words(mapped if isinstance(mapped, dict) else {}):
        repo, _, where = reference.rpartition("--")
        module = where.partition(".")[0]
        if repo:
            yield f"{name} takes its code from {repo}, which a job without network cannot reach"
        elif module and not (folder / f"{module}.py").is_file():
            yield f"{name} names {module}.py, which is not there"


def _words(mapped: dict[str, Any]) -> list[str]:
    rows = [row if isinstance(row, list) else [row] for row in mapped.values()]
    return sorted({word for row in rows for word in row if isinstance(word, str)})


def _read(file: Path) -> dict[str, Any]:
    """A JSON object, or {} where there is none to read."""
    try:
        document = documents.read(file)
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _dataset(folder: Path) -> Iterator[str]:
    names = [file.name for file in folder.rglob("*") if file.is_file() and file.stat().st_size]
    if all(name.endswith(NO_DATA) for name in names):
        yield "no file of it holds rows"


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of this module."""
    assets = sys.argv[1:] if argv is None else argv

    def proven() -> None:
        missing = 0
        for word in assets:
            name, _, asset = word.partition("=")
            kind, _, path = asset.partition(":")
            asset_faults = list(faults(kind, Path(path)))
            missing += len(asset_faults)
            for fault in asset_faults:
                print(f"{name}: {fault}", file=sys.stderr)
            if asset_faults:
                print(f"  to stage it again: rm {path}", file=sys.stderr)
            else:
                print(f"{name}: whole, nothing in it asks for the network")
        if missing:
            raise NotStaged("a job without network would not find all that it opens; nothing was queued")

    return guarded(proven)


if __name__ == "__main__":
    sys.exit(main())
