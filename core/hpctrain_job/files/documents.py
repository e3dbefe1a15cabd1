"""Files that others may have written: whatever cannot be read is a ValueError, and memory has a limit."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

LARGEST = 64 << 20
"""Bytes; the index of the largest models that are published has 9 MB."""
SHORT = 64 << 10
"""Bytes of a file that holds a line or two: a name, a number, a pointer."""


def read(path: Path) -> Any:
    """The document in a file; OSError or ValueError where there is none."""
    return parse(whole(path))


def whole(path: Path, largest: int = LARGEST) -> bytes:
    """All of a file; ValueError where it is larger than any of its kind."""
    with path.open("rb") as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise ValueError(f"it is larger than {largest >> 10:,} KiB")
    return content


def text(path: Path, largest: int = LARGEST) -> str:
    """The same as text; ValueError also where it is not UTF-8."""
    return whole(path, largest).decode()


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
