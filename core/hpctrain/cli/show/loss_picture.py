"""The loss of a run, or of several, as an SVG file whose points are those of metrics.jsonl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hpctrain.errors import ConfigError
from hpctrain.run import files
from hpctrain.run.metrics import Metrics
from hpctrain.ui.picture import MOST, Curve, picture


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


def write_several(path: str | Path, runs: Mapping[str, Metrics]) -> Path:
    """Write the losses of runs, by their titles, over one pair of axes."""
    if len(runs) > MOST:
        raise ConfigError.of("usage", f"a picture shows {MOST} runs at most, not {len(runs)}")
    curves = []
    for title, metrics in runs.items():
        rows = metrics.training
        curves.append(Curve(title, [row["step"] for row in rows], [row["loss"] for row in rows]))
    target = Path(path)
    files.write(target, picture("loss", curves))
    return target
