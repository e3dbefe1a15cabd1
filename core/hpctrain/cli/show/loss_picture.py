"""The loss of a run as an SVG file whose points are those of metrics.jsonl."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpctrain.run import files
from hpctrain.ui.picture import Curve, picture


def write(
    path: str | Path, title: str, rows: list[dict[str, Any]], evaluated: Sequence[dict[str, Any]] = ()
) -> Path:
    """Write the picture; each curve has one point for each row, that of evaluations where there are any."""
    curves = [Curve("loss", [r["step"] for r in rows], [r["loss"] for r in rows])]
    if evaluated:
        losses = [r["eval_loss"] for r in evaluated]
        curves.append(Curve("eval_loss", [r["step"] for r in evaluated], losses))
    target = Path(path)
    files.write(target, picture(f"{title}: loss", curves))
    return target
