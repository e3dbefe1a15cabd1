"""A file or a folder of the user by its content: one digest, and copies that are proven by it.

`python -m hpctrain_job.tree SOURCE TARGET [--sha256 HEX]`. `.git`, caches and locks of runs do not count.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpctrain_job import exit_codes

LEFT_OUT = frozenset({".git", "__pycache__"})
LOCK, PINS = ".lock.toml", b"\n# ---- pins, written by `hpctrain lock`"
"""How the name of a run's lock ends, and what stands in it: `submit` writes one beside the run file, when the
content of a folder with both is known already."""


def entries(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files and links of a folder that count, by name, in an order that is the same everywhere."""
    paths = []
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if Path(place, name).is_symlink()]
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        paths += [path for name in (*files, *links) if _counts(path := Path(place, name))]
    for path in sorted(paths, key=lambda p: os.fsencode(p.relative_to(folder))):
        yield str(path.relative_to(folder)), path


def _counts(path: Path) -> bool:
    if path.name.endswith(LOCK) and path.is_file() and not path.is_symlink():
        return PINS not in path.read_bytes()
    return path.name not in LEFT_OUT


def digest(path: Path) -> str:
    """SHA-256 of a file; of a folder: names, executable bits, links and content.

    The same for every copy: times, owners and the order of the folder do not count.
    """
    if not path.is_dir():
        return _of(path.resolve())
    whole = hashlib.sha256()
    for name, file in entries(path):
        raw = os.fsencode(name)
        whole.update(f"{_kind(file)} {len(raw)} ".encode() + raw + f" {_of(file)}\n".encode())
    return whole.hexdigest()


def _kind(path: Path) -> str:
    if path.is_symlink():
        return "link"
    return "program" if path.stat().st_mode & stat.S_IXUSR else "file"


def copy(source: Path, target: Path) -> None:
    """Copy what counts of `source` to `target`, which is made."""
    import shutil  # with bz2, lzma and zlib: half the cost of a module whose digest every plan needs

    target.parent.mkdir(parents=True, exist_ok=True)
    if not source.is_dir():
        shutil.copy(source, target)
        return
    target.mkdir(exist_ok=True)
    for name, file in entries(source):
        into = target / name
        into.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, into, follow_symlinks=False)


def _of(path: Path) -> str:
    if path.is_symlink():
        return hashlib.sha256(os.fsencode(path.readlink())).hexdigest()
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe would wait for ever
        raise OSError(0, "it is neither a file nor a folder")
    whole = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            whole.update(block)
    return whole.hexdigest()


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of this module."""
    import argparse  # late: loading a run file needs only the digest

    parser = argparse.ArgumentParser(prog="hpctrain_job.tree", description="copy by content")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--sha256", default="")
    args = parser.parse_args(argv)
    if not args.source.exists():
        print(f"error: {args.source} is not here", file=sys.stderr)
        return exit_codes.ABSENT
    copy(args.source, args.target)
    # The copy is what is proven: the source may change while we read it.
    if args.sha256 and digest(args.target) != args.sha256:
        print(f"error: {args.source} changed since the run was planned; plan again", file=sys.stderr)
        return exit_codes.DIFFERS
    return 0


if __name__ == "__main__":
    sys.exit(main())
