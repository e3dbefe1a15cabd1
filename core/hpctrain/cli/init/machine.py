"""Facts that programs of every Linux machine print of it: its processor, its GPUs, its modules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpctrain.model.reading import Reading

_NVIDIA = re.compile(r"^GPU \d+: (?P<name>.+?)(?: \(UUID|$)", re.MULTILINE)
_NVIDIA_TABLE = re.compile(
    r"^\| +\d+  (?P<name>\S.*?) +(?:On|Off|N/A) +\|.*\n\|[^|]*\|[^|]*/ *(?P<mib>\d+)MiB", re.MULTILINE
)
_AMD = re.compile(r"^GPU\[\d+\]\s*:\s*Card [Ss]eries\s*:\s*(?P<name>\S.*?)\s*$", re.MULTILINE)
_AMD_MEMORY = re.compile(r"^GPU\[\d+\]\s*:\s*VRAM Total Memory \(B\)\s*:\s*(?P<bytes>\d+)", re.MULTILINE)
_LSCPU = re.compile(r"^(?P<key>Architecture|CPU\(s\)):\s+(?P<value>\S+)$", re.MULTILINE)
_MODULES = re.compile(r"^(?P<name>[A-Za-z][\w.+-]*/[\w.+-]+)(?:\(default\))?$", re.MULTILINE)
_TERSE = re.compile(r"^/\S+:$", re.MULTILINE)
MATTERS = re.compile(
    r"(?:cuda|cudatoolkit|rocm|amd|gcc|PrgEnv|python|cray-python|nccl|rccl|aws-ofi)[\w-]*/", re.I
)
"""Modules that an environment is often built with."""


def readings(outputs: Mapping[str, str]) -> Iterator[Reading]:
    """What lscpu, nvidia-smi and rocm-smi say, by the names of their files."""
    for file, text in outputs.items():
        yield from _processor(file, text)
        yield from _nvidia(file, text)
        yield from _amd(file, text)


def modules(outputs: Mapping[str, str]) -> dict[str, list[str]]:
    """The modules of each `module -t avail` that an environment is often built with."""
    return {
        file: [name for name in _MODULES.findall(text) if MATTERS.match(name)]
        for file, text in outputs.items()
        if _TERSE.search(text)
    }


def _processor(file: str, text: str) -> Iterator[Reading]:
    settings = {match["key"]: match["value"] for match in _LSCPU.finditer(text)}
    if len(settings) == 2:
        yield Reading(table="", key="arch", value=settings["Architecture"], file=file)
        yield Reading(table="hardware", key="cores_per_node", value=int(settings["CPU(s)"]), file=file)


def _nvidia(file: str, text: str) -> Iterator[Reading]:
    rows = list(_NVIDIA_TABLE.finditer(text))
    gpus = [match["name"] for match in rows or _NVIDIA.finditer(text)]
    memory = round(int(rows[0]["mib"]) / 1024) if rows else None
    yield from _gpus(file, "cuda", gpus, memory)


def _amd(file: str, text: str) -> Iterator[Reading]:
    gpus = [match["name"] for match in _AMD.finditer(text)]
    memory = _AMD_MEMORY.search(text)
    yield from _gpus(file, "rocm", gpus, round(int(memory["bytes"]) / 1024**3) if memory else None)


def _gpus(file: str, kind: str, gpus: list[str], memory_gb: int | None) -> Iterator[Reading]:
    if not gpus:
        return
    facts = {"gpu": gpus[0], "gpu_kind": kind, "gpus_per_node": len(gpus), "gpu_memory_gb": memory_gb}
    for key, value in facts.items():
        if value is not None:
            yield Reading(table="hardware", key=key, value=value, file=file)
