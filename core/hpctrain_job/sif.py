"""The architecture of a SIF image, read from its header: nothing in it is run.

`python -m hpctrain_job.sif FILE aarch64` ends with 65 when the image is for other machines, minutes after the
mistake and not in the queue.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from hpctrain_job import exit_codes

MAGIC = b"SIF_MAGIC\x00"
LAUNCH, VERSION, ARCH = 32, 3, 3
CODES = {b"01": "386", b"02": "x86_64", b"03": "arm", b"04": "aarch64", b"05": "ppc64", b"06": "ppc64le"}
IDENT = 16


def arch(path: Path) -> str:
    """What the image is for; empty where its header does not say, or where it is no SIF."""
    head = _header(path)
    return CODES.get(head[VERSION : VERSION + 2], "")


def ident(path: Path) -> str:
    """The id that the image got when it was made; empty where it is no SIF."""
    head = _header(path)
    return head[VERSION + ARCH : VERSION + ARCH + IDENT].hex()


def _header(path: Path) -> bytes:
    with path.open("rb") as file:
        start = file.read(LAUNCH + len(MAGIC) + VERSION + ARCH + IDENT)
    return start[LAUNCH + len(MAGIC) :] if start[LAUNCH:].startswith(MAGIC) else b""


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of this module."""
    file, expected = sys.argv[1:] if argv is None else argv
    actual = arch(Path(file))
    if actual and actual != expected:
        print(f"hpctrain: the image is for {actual}, and the training nodes are {expected}", file=sys.stderr)
        return exit_codes.DIFFERS
    return 0


if __name__ == "__main__":
    sys.exit(main())
