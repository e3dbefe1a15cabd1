"""Libraries that a site's modules bring, compiled here: real ELF files with the real names of functions.

What they export is what the version they say exports, so that `nm -D`, ctypes and the loader tell true;
whatever is called, but for the version, fails with NCCL's own code for an internal error.

usage: python3 -m tests.twin.services.libraries <LIST     (lines of `KIND VERSION PATH`)
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

NCCL = {
    "2.0": "UniqueId CommInitRank CommInitAll CommDestroy CommCount CommCuDevice CommUserRank Reduce Bcast "
    "Broadcast AllReduce ReduceScatter AllGather GroupStart GroupEnd",
    "2.4": "CommAbort CommGetAsyncError",
    "2.7": "Send Recv",
    "2.11": "RedOpCreatePreMulSum RedOpDestroy",
    "2.13": "GetLastError",
    "2.14": "CommInitRankConfig CommFinalize",
    "2.18": "CommSplit",
    "2.19": "MemAlloc MemFree CommRegister CommDeregister",
    "2.22": "GroupSimulateEnd",
    "2.23": "CommInitRankScalable",
    "2.27": "CommShrink CommWindowRegister CommWindowDeregister",
}
"""Functions by the version that brought them, without `nccl`; a missing one is how a mix-up shows."""
PLUGINS = {"aws-ofi-nccl": "AWS Libfabric", "aws-ofi-rccl": "OFI"}


def numbers(version: str) -> tuple[int, ...]:
    """A version to compare by."""
    return tuple(int(part) for part in version.split("."))


def nccl(version: str) -> Iterable[str]:
    """NCCL or RCCL."""
    major, minor, patch = numbers(version)
    code = major * 10_000 + minor * 100 + patch
    yield f"int ncclGetVersion(int *version) {{ *version = {code}; return 0; }}"
    yield 'const char *ncclGetErrorString(int code) { return "a stand-in without any fabric"; }'
    for since, names in NCCL.items():
        if numbers(since) <= (major, minor):
            for name in names.split():
                yield f"int nccl{'Get' * (name == 'UniqueId')}{name}(void) {{ return 3; }}"


def plugin(kind: str) -> Iterable[str]:
    """A network plugin: tables whose first word is its name."""
    yield "extern unsigned fi_version(void);"
    yield "static int init(void *log) { return fi_version() ? 3 : 2; }"
    yield "struct net { const char *name; int (*init)(void *); };"
    for number in (6, 7, 8):
        yield f'const struct net ncclNetPlugin_v{number} = {{ "{PLUGINS[kind]}", init }};'


def libfabric(version: str) -> Iterable[str]:
    """libfabric without providers."""
    major, minor, *_ = numbers(version)
    yield f"unsigned fi_version(void) {{ return {major << 16 | minor}; }}"
    for name in ("fi_getinfo", "fi_fabric", "fi_freeinfo", "fi_dupinfo", "fi_tostr"):
        yield f"int {name}(void) {{ return -61; }}"


def build(kind: str, version: str, path: Path) -> None:
    """Compile one to `path`, with the unversioned name beside it."""
    own = {"nccl": nccl, "libfabric": libfabric}
    lines = plugin(kind) if kind in PLUGINS else own[kind](version)
    needs = ("-lfabric", f"-L{_fabric(path)}", f"-Wl,-rpath,{_fabric(path)}") if kind in PLUGINS else ()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", suffix=".c") as source:
        source.write("\n".join((*lines, "")))
        source.flush()
        argv = ("gcc", "-shared", "-fPIC", f"-Wl,-soname,{path.name}", "-o", str(path), source.name, *needs)
        subprocess.run(argv, check=True, timeout=60)
    plain = path.with_name(path.name.partition(".so")[0] + ".so")
    if plain != path:
        plain.symlink_to(path.name)


def _fabric(path: Path) -> Path:
    """Where the site's libfabric is: listed before the plugins that need it."""
    return next(iter(sorted(Path("/opt/cray/libfabric").glob("*/lib*"))), path.parent)


def main() -> None:
    """Compile what is listed."""
    for line in sys.stdin:
        kind, version, path = line.split()
        build(kind, version, Path(path))


if __name__ == "__main__":
    main()
