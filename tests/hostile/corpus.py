"""The corpus that the guided fuzzer left in the repository: what reached lines that the right file does not.

`python -m bench.fuzz` writes it. Only small files are in it: what is damaged by chance in a large one is as
easily made again.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from tests.hostile.targets import FIRST, Target

FILE = Path(__file__).with_name("corpus.zip")
LARGEST = 4096
"""Bytes of a file."""
MOST = 6
"""Files of a target: those that reach most."""
_EPOCH = (2026, 1, 1, 0, 0, 0)


def corpus(target: Target) -> list[bytes]:
    """The files that were found with the first reader of the same file."""
    return _all().get(_folder(FIRST[target.ground, target.file]), [])


@cache
def _all() -> dict[str, list[bytes]]:
    by_folder: dict[str, list[bytes]] = {}
    with zipfile.ZipFile(FILE) as archive:
        for name in archive.namelist():
            by_folder.setdefault(name.rpartition("/")[0], []).append(archive.read(name))
    return by_folder


def write(found: Iterable[tuple[Target, Sequence[bytes]]]) -> None:
    """Put these in the place of all."""
    with zipfile.ZipFile(FILE, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for target, files in found:
            for number, data in enumerate(files):
                archive.writestr(
                    zipfile.ZipInfo(f"{_folder(target)}/{number}", _EPOCH), data, zipfile.ZIP_DEFLATED
                )


def _folder(target: Target) -> str:
    return target.name.replace("/", "-").replace(" ", "-")
