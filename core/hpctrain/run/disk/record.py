"""The record of a run: append-only lines of JSON, the only truth about what was done."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from hpctrain import versions
from hpctrain.errors import ConfigError, IntegrityError
from hpctrain.run.system import files
from hpctrain.run.this_computer import now
from hpctrain_job.files import documents

Entry = dict[str, Any]

RESERVED_FIELDS = ("v", "time", "event")
"""The fields that every event has."""


@frozen
class Record:
    """`record.jsonl` of one run."""

    path: Path

    def append(self, event_name: str, **fields: Any) -> None:
        """Write one event through to the disk; a number that is not finite becomes null."""
        taken = [name for name in RESERVED_FIELDS if name in fields]
        if taken:
            raise TypeError(f"an event cannot have a field named {taken[0]!r}: the record sets it")
        entry = {"v": versions.RECORD, "time": now(), "event": event_name, **_finite(fields)}
        files.append_line(self.path, dump(entry))

    def read(self) -> list[Entry]:
        """Every event in order; a line that a crash tore is left out."""
        entries = [entry for entry in read_lines(self.path) if isinstance(entry.get("event"), str)]
        numbers = [e["v"] for e in entries if isinstance(e.get("v"), int)]
        newer = [number for number in numbers if number > versions.RECORD]
        if newer:
            raise ConfigError.of(
                "newer-record",
                f"{self.path} was written by a newer hpctrain: it has record version {newer[0]}, "
                f"this one reads {versions.RECORD}",
                hint="pip install --upgrade hpctrain",
            )
        return entries


def dump(entry: Entry) -> bytes:
    """One line of JSON without its end."""
    return json.dumps(entry, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def read_lines(path: Path) -> list[Entry]:
    """The JSON objects of an append-only file; none when it does not exist."""
    with files.naming(path, "read"):
        try:
            data = documents.whole(path)
        except FileNotFoundError:
            return []
        except ValueError as error:
            raise IntegrityError.of("too-large", f"{path}: {error}", hint=f"mv {path} {path}.large") from None
    whole = data.split(b"\n")[:-1]  # what follows the last newline is still being written, or torn
    parsed = (_parse(line) for line in whole)
    return [entry for entry in parsed if entry is not None]


def _parse(line: bytes) -> Entry | None:
    if not line.startswith(b"{"):
        return None  # what is no line of ours costs next to nothing
    try:
        value = documents.parse(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
