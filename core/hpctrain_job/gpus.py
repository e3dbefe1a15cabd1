"""Prove that torch sees the GPUs it was built for, and which NCCL is really loaded.

`python -m hpctrain_job.gpus [--cuda 12.6] [--hip 6.1] [--devices N] [--nccl 2.27] [--symbol NAME]`
prints what is there, and ends with 1 when something is not as asked. With `--if-there` an environment
without torch has nothing to prove.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
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
    major, remainder = divmod(number.value, 10000 if number.value >= 10000 else 1000)
    return f"{major}.{remainder // 100}.{remainder % 100}"


def exports(library: str, symbol: str) -> bool:
    """Whether the library has a function of this name."""
    return hasattr(ctypes.CDLL(library), symbol)


def older(version: str, least: str) -> bool:
    """Whether a version is older than the `least` that is needed."""
    return _numbers(version) < _numbers(least)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def accelerator(torch: Any) -> Any:
    """torch's module of the GPUs that are here: torch.cuda (also AMD's) or torch.xpu (Intel's); else None."""
    return next((module for module in _kinds(torch) if module.is_available()), None)


def _kinds(torch: Any) -> tuple[Any, ...]:
    return tuple(getattr(torch, name) for name in ("cuda", "xpu") if hasattr(torch, name))


def complaints(torch: Any, args: argparse.Namespace) -> Iterator[str]:
    """What is not as asked of torch itself."""
    for kind, required in (("cuda", args.cuda), ("hip", args.hip)):
        built = str(getattr(torch.version, kind, None) or "")
        if required and not _begins(built, required):
            yield f"torch {torch.__version__} is built for {kind} {built or 'none'}, and {required} is wanted"
    if args.devices:
        count = max(module.device_count() for module in _kinds(torch))
        if count < args.devices:
            yield f"torch sees {count} GPUs, and {args.devices} are wanted: no driver, or a torch without it"


def _begins(version: str, required: str) -> bool:
    return version.split(".")[: required.count(".") + 1] == required.split(".")


def nccl_complaints(libraries: Sequence[str], args: argparse.Namespace) -> Iterator[str]:
    """What is not as asked of the NCCL that is in memory."""
    if not libraries:
        if args.nccl or args.symbol:
            yield "no NCCL is loaded as a library of its own"
        return
    if len(libraries) > 1:
        yield f"two are loaded: {' and '.join(libraries)}; LD_PRELOAD and LD_LIBRARY_PATH name different ones"
    for library in libraries:
        version = version_of(library)
        print(f"nccl {version or 'of an unknown version'} {library}")
        if args.nccl and older(version, args.nccl):
            yield f"{library} is {version or 'unknown'}, older than {args.nccl}"
        if args.symbol and not exports(library, args.symbol):
            yield f"{library} has no {args.symbol}: a newer one must be preloaded"


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of this module."""
    parser = argparse.ArgumentParser(prog="hpctrain_job.gpus", description="prove torch, GPUs and NCCL")
    for name in ("--cuda", "--hip", "--nccl", "--symbol"):
        parser.add_argument(name, default="")
    parser.add_argument("--devices", type=int, default=0)
    parser.add_argument("--if-there", action="store_true")
    args = parser.parse_args(argv)
    if args.if_there and find_spec("torch") is None:
        print("no torch")
        return 0
    torch = import_module("torch")
    print(f"torch {torch.__version__} cuda {torch.version.cuda} hip {getattr(torch.version, 'hip', None)}")
    if gpus := accelerator(torch):
        names = [gpus.get_device_name(n) for n in range(gpus.device_count())]
        print(f"gpus {len(names)}: {', '.join(sorted(set(names)))}")
        torch.ones(2, device="cuda" if gpus is torch.cuda else "xpu").sum().item()
    if gpus is torch.cuda:
        torch.cuda.nccl.version()
    problems = [
        *complaints(torch, args),
        *nccl_complaints(loaded(Path("/proc/self/maps").read_text()), args),
    ]
    for complaint in problems:
        print(f"error: {complaint}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
