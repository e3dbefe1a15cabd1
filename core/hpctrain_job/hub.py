"""A snapshot of a repository of the model hub: one listing, every file proven against it.

`python -m hpctrain_job.hub REPO --kind model --revision SHA --into PATH --partial FOLDER`. Where
huggingface_hub is installed it carries the bytes (it knows the hub's faster ways); what it brings
is proven all the same, and what it leaves out is fetched here.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from hpctrain_job.downloads.credentials import bare
from hpctrain_job.downloads.partial import claim, move
from hpctrain_job.downloads.proof import Proof
from hpctrain_job.downloads.room import free_or_fail
from hpctrain_job.downloads.web import Failed, Patience, Refused, get_json
from hpctrain_job.fetch import download, guarded

KINDS = ("model", "dataset")
UNUSED = ("original/*", "*.pth", "*.msgpack", "*.h5", "*.ot", "*.gguf", "onnx/*", "consolidated*")
"""What model repositories carry besides the weights that training reads: often twice their size."""

LONGEST_NAME = 255
"""Bytes of one name in a path, on every file system that we know."""

PICKLES = ("*.bin", "*.pt")
TOKENS = ("~/.cache/huggingface/token", "~/.huggingface/token")


@dataclass(frozen=True)
class Listing:
    """What the hub says of one revision: its commit and the proof of each file."""

    commit: str
    files: Mapping[str, Proof]


@dataclass(frozen=True)
class Repo:
    """A repository of the hub and how to speak to it."""

    name: str
    kind: str = "model"
    endpoint: str = ""
    token: str = ""

    @property
    def base(self) -> str:
        """The hub's address; HF_ENDPOINT names a mirror."""
        return (self.endpoint or os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")

    @property
    def headers(self) -> dict[str, str]:
        """The user's token, when there is one."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def listing(self, revision: str, *, patience: Patience | None = None) -> Listing:
        """The commit and files behind `revision`, in one request."""
        where = f"{self.base}/api/{self.kind}s/{quote(self.name)}/revision/{quote(revision, safe='')}"
        answer = get_json(f"{where}?blobs=true", headers=self.headers, patience=patience)
        try:
            return Listing(_text(answer["sha"]), dict(map(_proven, answer["siblings"])))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise Failed(f"{bare(where)}: the answer is no listing of a repository ({error})") from None

    def url(self, path: str, revision: str) -> str:
        """The address of one file's content on the hub."""
        kind = "datasets/" if self.kind == "dataset" else ""
        return f"{self.base}/{kind}{quote(self.name)}/resolve/{quote(revision, safe='')}/{quote(path)}"


def token() -> str:
    """The user's token from the places the hub's own tools use; empty when there is none."""
    if value := os.environ.get("HF_TOKEN") or os.environ.get("HUGGING_FACE_HUB_TOKEN"):
        return value.strip()
    named_files = [os.environ["HF_TOKEN_PATH"]] if "HF_TOKEN_PATH" in os.environ else []
    home = [f"{os.environ['HF_HOME']}/token"] if "HF_HOME" in os.environ else []
    for place in (*named_files, *home, *TOKENS):
        file = Path(place).expanduser()
        if file.is_file():
            return file.read_text().strip()
    return ""


def select_files(
    files: Iterable[str], include: Sequence[str], exclude: Sequence[str], kind: str
) -> list[str]:
    """The files to bring: those the user named, else all that training needs."""
    names = sorted(files)
    if include:
        return [n for n in names if _matches(n, include) and not _matches(n, exclude)]
    unused = (*exclude, *(UNUSED if kind == "model" else ()))
    if kind == "model" and any(n.endswith(".safetensors") and not _matches(n, unused) for n in names):
        unused = (*unused, *PICKLES)
    return [n for n in names if not _matches(n, unused)]


def snapshot(
    repo: Repo,
    revision: str,
    folder: Path,
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    quota_gb: float | None = None,
    patience: Patience | None = None,
) -> None:
    """Bring a revision into `folder`, continuing what is there."""
    listing = repo.listing(revision, patience=patience)
    _refuse_unsafe(listing.files)
    names = select_files(listing.files, include, exclude, repo.kind)
    if not names:
        raise Failed(f"{repo.name}: no file matches {' '.join(include) or 'what training needs'}")
    sizes = {name: listing.files[name].size or 0 for name in names}
    print(f"{repo.name} at {listing.commit[:12]}: {len(names)} files, {sum(sizes.values()) / 1e9:.2f} GB")
    folder.mkdir(parents=True, exist_ok=True)
    coming = sum(size for name, size in sizes.items() if not (folder / name).exists())
    free_or_fail(folder, coming, quota_gb=quota_gb)
    _carry(repo, listing.commit, folder, names)
    for name in names:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        download(
            repo.url(name, listing.commit),
            target,
            proof=listing.files[name],
            headers=repo.headers,
            patience=patience,
        )
    _bare(folder, set(names))


def _carry(repo: Repo, commit: str, folder: Path, names: list[str]) -> None:
    """Let huggingface_hub bring what it can, where it is installed; proof comes afterwards."""
    if find_spec("huggingface_hub") is None:
        return
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    snapshot_download = import_module("huggingface_hub").snapshot_download

    try:
        snapshot_download(
            repo.name,
            repo_type=repo.kind,
            revision=commit,
            allow_patterns=names,
            local_dir=folder,
            token=repo.token or False,
            endpoint=repo.base,
        )
    except Exception as error:  # whatever it raises, the standard library goes on from here
        reason = str(error).partition("\n")[0]
        print(f"huggingface_hub: {type(error).__name__}: {reason}; going on without it", flush=True)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _proven(row: Mapping[str, Any]) -> tuple[str, Proof]:
    """A file of the hub's listing, with what proves it."""
    size = row.get("size")
    if size is not None and (type(size) is not int or size < 0):
        raise ValueError(f"the size {size!r}")
    sha256 = _text((row.get("lfs") or {}).get("sha256", ""))
    return _text(row["rfilename"]), Proof(size=size, sha256=sha256, git=_text(row.get("blobId", "")))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} where a text is needed")
    return value


def _refuse_unsafe(paths: Iterable[str]) -> None:
    """Names that would leave the folder, that no disk takes, or of which one is the folder of another."""
    names = set(paths)
    for path in names:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or "\0" in path:
            raise Refused(f"the hub lists a file that would leave its folder: {path!r}", 0)
        if any(len(part.encode()) > LONGEST_NAME for part in parts):
            raise Refused(f"the hub lists a file whose name is too long: {path[:60]!r}..", 0)
        if taken := names & {str(parent) for parent in PurePosixPath(path).parents}:
            raise Refused(f"the hub lists {min(taken)!r} as a file and as a folder", 0)


def _bare(folder: Path, names: set[str]) -> None:
    """Remove what helped on the way: a snapshot holds its files and nothing else."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.relative_to(folder).as_posix() not in names:
            path.unlink()


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of this module."""
    parser = argparse.ArgumentParser(prog="hpctrain_job.hub", description="fetch a snapshot from the hub")
    parser.add_argument("repo")
    parser.add_argument("--kind", choices=KINDS, default="model")
    parser.add_argument("--revision", required=True)
    parser.add_argument("--into", required=True, type=Path)
    parser.add_argument("--partial", required=True, type=Path)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--exclude", action="append", default=[])
    parser.add_argument("--quota-gb", type=float)
    parser.add_argument("--tries", type=int, default=Patience.tries)
    args = parser.parse_args(argv)
    repo = Repo(args.repo, args.kind, token=token())
    patience = Patience(tries=args.tries)

    def bring() -> None:
        with claim(args.partial, args.into) as folder:
            try:
                snapshot(
                    repo,
                    args.revision,
                    folder,
                    include=args.include,
                    exclude=args.exclude,
                    quota_gb=args.quota_gb,
                    patience=patience,
                )
            except Refused as error:
                raise explained(error, repo) from None
            move(folder, args.into)

    return guarded(bring)


def explained(error: Refused, repo: Repo) -> Refused:
    """A refusal with what the user can do about it."""
    if error.status in (401, 403):
        reason = "the token was not accepted" if repo.token else "no token"
        hint = "accept the licence on the repository's page, then: hf auth login"
        return Refused(f"{repo.name} refused the download ({error.status}, {reason}); {hint}", error.status)
    if error.status == 404:
        return Refused(f"{repo.name} has no such revision, or there is no such {repo.kind}", error.status)
    return error


if __name__ == "__main__":
    sys.exit(main())
