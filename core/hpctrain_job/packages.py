"""What a Python has: `python -m hpctrain_job.packages` prints its list, in the form of `listing`.

Run inside a base image it makes the list that later resolutions keep to.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from hpctrain_job import gpus, sdist
from hpctrain_job.listing import Listing, constrained, normal

CUDA = Path("/usr/local/cuda/version.json")
NCCL = "libnccl.so.2"


def listing_here(environ: Mapping[str, str] = os.environ) -> Listing:
    """What this Python has, and what its pip is told about packages that it has not."""
    packages = installed()
    files = sdist.pip_settings(environ, "install").get("constraint", "").split()
    lines = [line.split(" #")[0].strip() for file in files for line in _lines(Path(file))]
    named = [line for line in lines if constrained(line)]
    facts = {"cuda": _cuda(environ), "nccl": environ.get("NCCL_VERSION") or gpus.version_of(NCCL)}
    if files:
        facts["constraint-file"] = f"{len(named)} lines {' '.join(files)}"
    return Listing(
        python=".".join(map(str, sys.version_info[:2])),
        arch=platform.machine(),
        packages=packages,
        constraints=tuple(line for line in named if constrained(line) not in packages),
        facts={name: value for name, value in facts.items() if value},
    )


def installed() -> dict[str, str]:
    """The version of each distribution; of two by one name the one that is imported."""
    versions: dict[str, str] = {}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"] if distribution.metadata else None
        if name:
            versions.setdefault(normal(name), distribution.version)
    return versions


def _lines(file: Path) -> Iterator[str]:
    # pip would end with an error; the list of packages is worth having all the same.
    with contextlib.suppress(OSError):
        yield from file.read_text(encoding="utf-8", errors="replace").splitlines()


def _cuda(environ: Mapping[str, str]) -> str:
    """The version of the CUDA toolkit: as its own file says, else as images set it."""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        return str(json.loads(CUDA.read_text(encoding="utf-8"))["cuda"]["version"])
    return environ.get("CUDA_VERSION", "")


def main() -> int:
    """The command line of this module."""
    print("\n".join(listing_here().lines()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
