"""JSON that others may have written: whatever cannot be read is a ValueError, and memory has a limit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LARGEST = 64 << 20
"""Bytes; the index of the largest models that are published has 9 MB."""


def read(path: Path) -> Any:
    """The document in a file; OSError or ValueError where there is none."""
    with path.open("rb") as file:
        text = file.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST >> 20} MiB")
    return parse(text)


def parse(text: str | bytes) -> Any:
    """The document of a text; ValueError also where it is nested too deeply for Python."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
