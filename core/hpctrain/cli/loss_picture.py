"""The loss of a run as an SVG file whose points are those of metrics.jsonl."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpctrain.run import files
from hpctrain.ui.picture import Curve, picture


def write(path: str | Path, title: str, rows: list[dict[str, Any]]) -> Path:
    """Write the picture; its curve has one point for each row."""
    curve = Curve("loss", [r["step"] for r in rows], [r["loss"] for r in rows])
    target = Path(path)
    files.write(target, picture(f"{title}: loss", [curve]))
    return target
