"""What a node's loader would take for talk between nodes: the libraries, and their versions, as JSON.

Started by its path on a login node or as a module in a job, behind the modules of training. Versions are read
out of the files, which may be of another architecture; nothing is loaded.

usage: libraries.py [VARIABLE ...]      also the values of these variables
"""

from __future__ import annotations

import json
import mmap
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

FILES = {
    "plugin": ("libnccl-net*.so*", "librccl-net*.so*"),
    "libfabric": ("libfabric.so*",),
    "nccl": ("libnccl.so*",),
    "rccl": ("librccl.so*",),
}
"""Part -> names of its file."""
INSIDE = {
    "plugin": rb"aws-ofi-[nr]ccl[- /]v?(\d+(?:\.\d+)+)",
    "libfabric": rb"libfabric[- /]v?(\d+\.\d+(?:\.\d+)+)",
    "nccl": rb"NCCL version (\d+(?:\.\d+)+)",
    "rccl": rb"RCCL version[ :]+(\d+(?:\.\d+)+)",
}
"""What stands in the file itself."""
SYSTEM = ("/usr/local/lib", "/usr/lib64", "/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")
"""Where the loader looks after LD_LIBRARY_PATH."""
_IN_PATH = re.compile(r"(?:libfabric|nccl|rccl|ofi[-\w]*)[-/]v?(\d+(?:\.\d+)+)", re.IGNORECASE)
TEXTS = {
    "driver": (
        ("/proc/driver/nvidia/version", r"Kernel Module\D+(\d+(?:\.\d+)+)"),
        ("/sys/module/amdgpu/version", r"(\d+(?:\.\d+)+)"),
    ),
    "rocm": (("${ROCM_PATH}/.info/version", r"(\d+(?:\.\d+)+)"),),
    "cuda": (("${CUDA_HOME}/version.json", r'"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"(\d+(?:\.\d+)+)'),),
}
"""Part -> files that say its version, and where in them."""


def values(names: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of these names that are set."""
    return {name: environ[name] for name in names if name in environ}


def parts(environ: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Part -> where it is, and its version."""
    return dict(_parts(environ))


def _parts(environ: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    preloaded = [Path(word) for word in re.split(r"[:\s]+", environ.get("LD_PRELOAD", "")) if word]
    folders = [*environ.get("LD_LIBRARY_PATH", "").split(":"), *SYSTEM]
    for part, patterns in FILES.items():
        candidates = [p for p in preloaded if any(p.match(pattern) for pattern in patterns)]
        if path := next((p for p in (*candidates, *_files(folders, patterns)) if p.is_file()), None):
            yield part, {"path": str(path), "version": _version(part, path)}
            if part == "plugin":
                folders = [*folders, *_folders_inside(path)]
    for part, places in TEXTS.items():
        for name, pattern in places:
            path_text = re.sub(r"\$\{(\w+)\}", lambda match: environ.get(match[1], "/nowhere"), name)
            if match := re.search(pattern, _text(Path(path_text)), re.DOTALL):
                yield part, {"path": path_text, "version": match[1]}


def _files(folders: Iterable[str], patterns: Iterable[str]) -> Iterator[Path]:
    for folder in filter(None, folders):
        for pattern in patterns:
            yield from sorted(Path(folder).glob(pattern))


def _folders_inside(plugin: Path) -> Iterator[str]:
    """Where the plugin itself looks for libfabric: folders that stand in its file."""
    try:
        content = plugin.read_bytes()
    except OSError:
        return
    for names in re.findall(rb"/[\w./+:-]*libfabric[\w./+:-]*", content):
        yield from names.decode("ascii").split(":")


def _version(part: str, path: Path) -> str:
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            inside = re.search(INSIDE[part], content)
            if inside:
                return inside[1].decode("ascii")
    except (OSError, ValueError):
        return ""
    of_path = _IN_PATH.findall(str(path.resolve()))
    return of_path[-1] if of_path else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    print(json.dumps({"parts": parts(os.environ), "values": values(sys.argv[1:], os.environ)}))
