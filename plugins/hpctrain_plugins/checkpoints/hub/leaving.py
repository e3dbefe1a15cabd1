"""Which files leave this computer when a folder is published: a dry run shows them, the upload sends them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path

from hpctrain_plugins.checkpoints import links
from hpctrain_plugins.checkpoints.record import RECORD

LEFT_OUT = (".*", "*/.*", RECORD)
"""Not uploaded: hidden files, and our own record, which names folders of this computer."""


def files(folder: Path) -> Mapping[str, Path]:
    """Name in the repository -> file here; IntegrityError when a link leads out of the folder."""
    links.check(folder)
    return dict(_files(folder))


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if file.is_file() and not any(fnmatch(name, pattern) for pattern in LEFT_OUT):
            yield name, file
