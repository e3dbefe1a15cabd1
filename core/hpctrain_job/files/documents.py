"""Files that others may have written: whatever cannot be read is a ValueError, and memory has a limit."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

LARGEST = 64 << 20
"""Bytes; the index of the largest models that are published has 9 MB."""


def read(path: Path) -> Any:
    """The document in a file; OSError or ValueError where there is none."""
    return parse(whole(path))


def whole(path: Path) -> bytes:
    """All of a file; ValueError where it is larger than any of its kind."""
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST >> 20} MiB")
    return content


def text(path: Path) -> str:
    """The same as text; ValueError also where it is not UTF-8."""
    return whole(path).decode()


def tail(path: Path) -> bytes:
    """The whole lines at the end of a file that may be of any size, so many as LARGEST holds."""
    with path.open("rb") as file:
        start = max(0, file.seek(0, os.SEEK_END) - LARGEST)
        file.seek(start)
        content = file.read(LARGEST)
    return content.partition(b"\n")[2] if start else content


def parse(text: str | bytes) -> Any:
    """The document of a text; ValueError also where it is nested too deeply for Python."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
