"""`run.json`: what the rows of `metrics.jsonl` mean and how the run ended."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

SCHEMA = "hpctrain/trained/1"


class Report:
    """A small JSON file that grows; every state of it on the disk is whole. Only rank 0 writes."""

    def __init__(self, path: Path, writes: bool) -> None:
        self.path = path
        self.writes = writes
        self.values: dict[str, Any] = {"schema": SCHEMA}
        if path.is_file():
            self.values |= json.loads(path.read_text(encoding="utf-8"))

    def add(self, **values: Any) -> None:
        """Set these values and write the file."""
        self.values |= values
        if self.writes:
            fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}")
            fresh.write_text(json.dumps(self.values, indent=2) + "\n", encoding="utf-8")
            fresh.replace(self.path)
