"""`conversion.json`: what a conversion decided, written beside its files and believed when they are read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from hpctrain.plugin import IntegrityError
from hpctrain.toolbox import DISTRIBUTION
from hpctrain_job.files import documents
from hpctrain_plugins.checkpoints.bands import Checksum
from hpctrain_plugins.checkpoints.options import ConvertOptions, Report
from hpctrain_plugins.checkpoints.origins import added, exactness, how, trace
from hpctrain_plugins.checkpoints.output import Output
from hpctrain_plugins.checkpoints.tensors import ITEMSIZE, Model, Origin

RECORD = "conversion.json"


def mapping(output: Output, source: Path, crcs: list[int] | None = None) -> tuple[dict[str, Any], ...]:
    """One row per tensor that is written: where, what, how, and from which of the source."""
    out: list[dict[str, Any]] = []
    for file in output.files:
        for part in file.parts:
            sources = trace(part.tensor)
            row = {
                "file": file.name,
                "name": part.tensor.name,
                "dtype": part.dtype,
                "shape": list(part.tensor.shape),
                "exactness": exactness(part),
                "how": how(part, sources),
                "from": [{"name": o.name, "file": _within(o.file, source)} for o in sources],
            }
            out.append({**row, "crc32": f"{crcs[len(out)]:08x}"} if crcs else row)
    return tuple(out)


def _within(file: Path, source: Path) -> str:
    return str(file.relative_to(source) if file.is_relative_to(source) else file)


def write(folder: Path, report: Report, options: ConvertOptions) -> None:
    """The report and what was asked for; a line for each tensor."""
    plain = {k: str(v) if isinstance(v, Path) else v for k, v in attrs.asdict(options).items()}
    document = {"tool": f"hpctrain {DISTRIBUTION}", **report.to_json(), "options": plain}
    # Where json indents it takes three times as long, and a thousand rows would be a book.
    rows = ",\n  ".join(map(json.dumps, document.pop("mapping")))
    head = json.dumps(document, indent=1).removesuffix("\n}")
    (folder / RECORD).write_text(f'{head},\n "mapping": [\n  {rows}\n ]\n}}\n')


def decisions(folder: Path) -> dict[str, Any]:
    """What our own conversion decided when it wrote this folder; empty when it did not."""
    table = _read(folder / RECORD).get("decisions")
    return table if isinstance(table, dict) else {}


def checksums(model: Model, source: Path) -> dict[Path, list[Checksum]]:
    """What records beside the source say of files that bring no checksums of their own.

    A file that has a tensor of another name or size than its record is not the one that was recorded.
    """
    files: dict[Path, set[Origin]] = {}
    for origin in _origins(model):
        if origin.file not in model.crcs:
            files.setdefault(origin.file, set()).add(origin)
    out: dict[Path, list[Checksum]] = {}
    for home in {source, source.parent, *(file.parent for file in files)}:
        rows = _rows(home)
        for file in {file for file, _ in rows} & set(files):
            file_checksums = [_checksum(o, rows.get((file, o.name)), home) for o in files[file]]
            if None not in file_checksums:
                out[file] = [entry for entry in file_checksums if entry]
    return out


def _origins(model: Model) -> Iterator[Origin]:
    for tensor in (*model.tensors.values(), *(t for pair in model.replicas for t in pair)):
        yield from tensor.origins
        yield from (origin for addend in added(tensor) for origin in addend.origins)


def _rows(home: Path) -> dict[tuple[Path, str], dict[str, Any]]:
    rows = _read(home / RECORD).get("mapping")
    listed = rows if isinstance(rows, list) else []
    checked_rows = [row for row in listed if isinstance(row, dict) and "crc32" in row]
    return {(home / str(row.get("file")), str(row.get("name"))): row for row in checked_rows}


def _checksum(origin: Origin, row: dict[str, Any] | None, home: Path) -> Checksum | None:
    if row is None:
        return None
    try:
        size, crc = ITEMSIZE.get(row["dtype"], 0) * math.prod(row["shape"]), int(row["crc32"], 16)
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(home / RECORD, error) from error
    noted = f"the checksum in {home / RECORD}"
    return Checksum(origin.offset, origin.size, crc, origin.name, noted) if size == origin.size else None


def _read(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        document = documents.read(file)
    except (OSError, ValueError) as error:
        raise _damaged(file, error) from error
    return document if isinstance(document, dict) else {}


def _damaged(file: Path, error: Exception) -> IntegrityError:
    message = f"{file} cannot be read ({type(error).__name__}: {error})"
    return IntegrityError.of("checkpoint-damaged", message, where=str(file))
