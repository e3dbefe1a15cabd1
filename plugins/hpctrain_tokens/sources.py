"""Inputs: from what a user names to files in a fixed order, each with its kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpctrain_job.files import documents
from hpctrain_tokens import hub
from hpctrain_tokens.faults import DataError

KINDS = {
    ".jsonl": "jsonl",
    ".json": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "text",
    ".parquet": "parquet",
    ".arrow": "arrow",
}
PACKED = (".gz", ".zst")
NO_DATA = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json", "config.json"}
"""JSON files beside data that describe it."""

_SPLIT = re.compile(r"(?P<name>.+):(?P<split>[A-Za-z_][\w.]*)\Z")


@dataclass(frozen=True)
class Source:
    """One file of data. `packed` is the suffix of its compression, or empty."""

    path: Path
    kind: str
    packed: str = ""

    @property
    def name(self) -> str:
        return str(self.path)


def find(inputs: Iterable[str], subset: str = "", split: str = "", revision: str = "") -> list[Source]:
    """The files that `inputs` name: files, folders, datasets of the hub, each with `:split` if wanted."""
    sources = []
    for entry in inputs:
        name, named_split = split_of(entry)
        path = Path(name).expanduser()
        if path.is_file():
            if named_split:
                raise DataError.of("no-split", f"{name} is a file and has no splits", file=entry, hint=name)
            sources.append(_source(path))
        elif path.is_dir():
            sources += _folder(path, subset, named_split or split)
        else:
            sources += _folder(hub.folder(name, revision), subset, named_split or split)
    return sources


def split_of(entry: str) -> tuple[str, str]:
    """`("name", "train")` of `name:train`; a path that exists is never taken apart."""
    match = None if Path(entry).exists() else _SPLIT.match(entry)
    return (match["name"], match["split"]) if match else (entry, "")


def _source(path: Path) -> Source:
    packed = path.suffix if path.suffix in PACKED else ""
    kind = KINDS.get(Path(path.stem).suffix if packed else path.suffix, "")
    if not kind or (packed and kind in ("parquet", "arrow")):
        kinds = " ".join(KINDS)
        raise DataError.of(
            "input-kind",
            f"{path.name} is of a kind that is not known",
            file=str(path),
            hint=f"one of {kinds}, and .gz or .zst behind those of text",
        )
    return Source(path, kind, packed)


def _folder(folder: Path, subset: str, split: str) -> list[Source]:
    files = [p for p in sorted(folder.rglob("*")) if _is_data(p.relative_to(folder)) and p.is_file()]
    named = declared(folder, subset, split)
    if named:
        files = [p for p in files if any(p.relative_to(folder).match(pattern) for pattern in named)]
    else:
        for word in filter(None, (subset, split)):
            files = [p for p in files if _names_word(p.relative_to(folder), word)] or _none(
                folder, files, word
            )
    if not files:
        raise DataError.of("no-input", f"no data below {folder}", file=str(folder))
    return [_source(p) for p in files]


def _is_data(below: Path) -> bool:
    hidden = any(part.startswith(".") for part in below.parts)
    inner = Path(below.stem) if below.suffix in PACKED else below
    return not hidden and below.name not in NO_DATA and inner.suffix in KINDS


def _names_word(below: Path, word: str) -> bool:
    """Whether a path names a split or subset as a whole word: `data/train-00000.parquet`."""
    return re.search(rf"(?:^|[^A-Za-z0-9]){re.escape(word)}(?:[^A-Za-z0-9]|$)", str(below)) is not None


def _none(folder: Path, files: list[Path], word: str) -> list[Path]:
    if len(files) == 1 and word == "train":
        return files  # a set of one file has one split, and that is its name
    listing = ", ".join(str(p.relative_to(folder)) for p in files[:6]) or "nothing"
    raise DataError.of(
        "no-split", f"no file below {folder} is of {word}; there is {listing}", file=str(folder)
    )


def _unreadable(card: Path, error: Exception) -> DataError:
    message = f"the card of the dataset cannot be read: {str(error).splitlines()[0]}"
    return DataError.of("data-unreadable", message, file=str(card), hint="name files below it")


def declared(folder: Path, subset: str, split: str) -> list[str]:
    """The patterns that the card of a hub dataset gives for this subset and split; [] without a card."""
    card = folder / "README.md"
    try:
        text = documents.whole(card).decode("utf-8", "replace") if card.is_file() else ""
    except (OSError, ValueError) as error:
        raise _unreadable(card, error) from None
    match = re.match(r"---\n(.*?)\n---", text, re.DOTALL)
    if match is None or "data_files" not in match[1]:
        return []
    import yaml  # late: only cards of the hub need it

    try:
        card_data = yaml.safe_load(match[1])
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise _unreadable(card, error) from None
    configs = _tables(card_data.get("configs")) if isinstance(card_data, dict) else []
    chosen = [c for c in configs if c.get("config_name") == subset] if subset else configs[:1]
    default = [c for c in configs if c.get("default")] if not subset else []
    return [p for c in default or chosen for p in _patterns(c.get("data_files"), split or "train")]


def _tables(rows: Any) -> list[dict[str, Any]]:
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _patterns(data_files: Any, split: str) -> Iterator[str]:
    if isinstance(data_files, (str, list)):
        yield from [data_files] if isinstance(data_files, str) else _strings(data_files, split)


def _strings(rows: list[Any], split: str) -> Iterator[str]:
    yield from (row for row in rows if isinstance(row, str))
    for row in _tables(rows):
        if row.get("split") == split:
            path = row.get("path") or []
            yield from [path] if isinstance(path, str) else path
