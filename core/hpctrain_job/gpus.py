"""Prove that torch sees the GPUs it was built for, and which NCCL is really loaded.

`python -m hpctrain_job.gpus [--cuda 12.6] [--hip 6.1] [--devices N] [--nccl 2.27] [--symbol NAME]`
prints what is there, and ends with 1 when something is not as asked.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

LIBRARIES = re.compile(r"/\S*/lib(?:nccl|rccl)\.so\S*")


def loaded(maps: str) -> list[str]:
    """The NCCL or RCCL libraries that this process has in memory, by their paths."""
    return sorted(set(LIBRARIES.findall(maps)))


def version_of(library: str) -> str:
    """What the library calls itself: 2.27.5; nothing where it does not say."""
    number = ctypes.c_int()
    try:
        if ctypes.CDLL(library).ncclGetVersion(ctypes.byref(number)):
            return ""
    except (OSError, AttributeError):
        return ""
    major, rest = divmod(number.value, 10000 if number.value >= 10000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


def exports(library: str, symbol: str) -> bool:
    """Whether the library has a function of this name."""
    return hasattr(ctypes.CDLL(library), symbol)


def older(version: str, least: str) -> bool:
    """Whether `version` comes before `least`."""
    return _numbers(version) < _numbers(least)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def complaints(torch: Any, asked: argparse.Namespace) -> Iterator[str]:
    """What is not as asked of torch itself."""
    for kind, wanted in (("cuda", asked.cuda), ("hip", asked.hip)):
        built = str(getattr(torch.version, kind, None) or "")
        if wanted and not _begins(built, wanted):
            yield f"torch {torch.__version__} is built for {kind} {built or 'none'}, and {wanted} is wanted"
    if asked.devices:
        count = torch.cuda.device_count()
        if count < asked.devices:
            yield f"torch sees {count} GPUs, and {asked.devices} are wanted: no driver, or a torch without it"


def _begins(version: str, wanted: str) -> bool:
    return version.split(".")[: wanted.count(".") + 1] == wanted.split(".")


def nccl_complaints(libraries: Sequence[str], asked: argparse.Namespace) -> Iterator[str]:
    """What is not as asked of the NCCL that is in memory."""
    if not libraries:
        if asked.nccl or asked.symbol:
            yield "no NCCL is loaded as a library of its own"
        return
    if len(libraries) > 1:
        yield f"two are loaded: {' and '.join(libraries)}; LD_PRELOAD and LD_LIBRARY_PATH name different ones"
    for library in libraries:
        version = version_of(library)
        print(f"nccl {version or 'of an unknown version'} {library}")
        if asked.nccl and older(version, asked.nccl):
            yield f"{library} is {version or 'unknown'}, older than {asked.nccl}"
        if asked.symbol and not exports(library, asked.symbol):
            yield f"{library} has no {asked.symbol}: a newer one must be preloaded"


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of this module."""
    parser = argparse.ArgumentParser(prog="hpctrain_job.gpus", description="prove torch, GPUs and NCCL")
    for name in ("--cuda", "--hip", "--nccl", "--symbol"):
        parser.add_argument(name, default="")
    parser.add_argument("--devices", type=int, default=0)
    asked = parser.parse_args(argv)
    torch = import_module("torch")
    print(f"torch {torch.__version__} cuda {torch.version.cuda} hip {getattr(torch.version, 'hip', None)}")
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
        print(f"gpus {len(names)}: {', '.join(sorted(set(names)))}")
        torch.ones(2, device="cuda").sum().item()
        torch.cuda.nccl.version()
    said = [
        *complaints(torch, asked),
        *nccl_complaints(loaded(Path("/proc/self/maps").read_text()), asked),
    ]
    for complaint in said:
        print(f"error: {complaint}", file=sys.stderr)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
