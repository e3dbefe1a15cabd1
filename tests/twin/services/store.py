"""What the hub keeps: repositories with commits, branches and tags, and their files by content.

A folder `models/OWNER/NAME` (or `datasets/...`) that somebody lays there is a repository too: what
is in it becomes the newest commit of `main`. A file `.gated` there asks for a token that may read.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

_LARGE = (".safetensors", ".bin", ".parquet", ".pt", ".gguf", ".idx")
"""What the hub's own .gitattributes send to the large file store."""
_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n"


def is_large(path: str, size: int) -> bool:
    """Does a file go to the large file store?"""
    return size > 0 and (path.endswith(_LARGE) or size > 10_000_000)


@dataclass(frozen=True)
class Entry:
    """A file of a commit: git's name of it, its content's hash and its size."""

    blob: str
    sha256: str
    size: int
    large: bool


@dataclass
class Commit:
    """One state of a repository."""

    files: dict[str, Entry]
    title: str = ""
    parent: str = ""

    @property
    def name(self) -> str:
        """The hash of what is in it and what came before."""
        said = "".join(f"{path} {entry.blob}\n" for path, entry in sorted(self.files.items()))
        return hashlib.sha1(f"{said}{self.parent}{self.title}".encode()).hexdigest()


@dataclass
class Record:
    """All that is known of one repository."""

    private: bool = False
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    commits: dict[str, Commit] = field(default_factory=dict)
    laid: str = ""
    """What was last seen in its folder."""

    def resolve(self, revision: str) -> str:
        """The commit that a revision names; empty when none."""
        known = revision if revision in self.commits else ""
        return self.branches.get(revision) or self.tags.get(revision) or known

    def add(self, branch: str, files: Mapping[str, Entry], title: str) -> str:
        """A new commit on a branch; none when nothing would change."""
        parent = self.branches.get(branch, "")
        if parent and self.commits[parent].files == files:
            return parent
        commit = Commit(dict(files), title, parent)
        self.commits[commit.name] = commit
        self.branches[branch] = commit.name
        return commit.name

    def history(self, commit: str) -> Iterable[tuple[str, Commit]]:
        """A commit and those before it."""
        while commit:
            yield commit, self.commits[commit]
            commit = self.commits[commit].parent


class Store:
    """Repositories below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.RLock()
        for name in ("models", "datasets", ".objects", ".records"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def object(self, sha256: str) -> Path:
        """Where content of that hash is, or would be."""
        return self.folder / ".objects" / sha256

    def entry(self, path: str, content: Path) -> Entry:
        """Keep a file's content."""
        sha256 = _sha256(content)
        size = content.stat().st_size
        if not self.object(sha256).exists():
            new = self.object(sha256).with_suffix(".new")
            shutil.copyfile(content, new)
            new.replace(self.object(sha256))
        return self.known(path, sha256, size, large=is_large(path, size))

    def known(self, path: str, sha256: str, size: int, *, large: bool) -> Entry:
        """The entry of content that is kept already."""
        body = _POINTER.format(sha256, size).encode() if large else self.object(sha256).read_bytes()
        blob = hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()
        return Entry(blob, sha256, size, large)

    def gated(self, kind: str, name: str) -> bool:
        """Does somebody have to ask first?"""
        return (self.folder / kind / name / ".gated").exists()

    def load(self, kind: str, name: str) -> Record | None:
        """A repository, with what lies in its folder now; None when there is none."""
        with self.lock:
            file, folder = self._file(kind, name), self.folder / kind / name
            record = _read(file) if file.exists() else Record() if folder.is_dir() else None
            if record is not None and folder.is_dir():
                self._take_in(record, kind, name)
            return record

    def _take_in(self, record: Record, kind: str, name: str) -> None:
        folder = self.folder / kind / name
        found = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != ".gated")
        stats = [(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in found]
        laid = hashlib.sha1(repr(stats).encode()).hexdigest()
        if laid != record.laid:
            files = {p.relative_to(folder).as_posix(): p for p in found}
            record.add("main", {path: self.entry(path, p) for path, p in files.items()}, "laid there")
            record.laid = laid
            self.save(kind, name, record)

    def save(self, kind: str, name: str, record: Record) -> None:
        """Keep a repository as it is now."""
        file = self._file(kind, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".new").write_text(json.dumps(asdict(record)))
        file.with_suffix(".new").replace(file)

    def _file(self, kind: str, name: str) -> Path:
        return self.folder / ".records" / kind / f"{name}.json"


def _sha256(content: Path) -> str:
    digest = hashlib.sha256()
    with content.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _read(file: Path) -> Record:
    said = json.loads(file.read_text())
    said["commits"] = {
        name: Commit({p: Entry(**e) for p, e in commit.pop("files").items()}, **commit)
        for name, commit in said["commits"].items()
    }
    return Record(**said)
