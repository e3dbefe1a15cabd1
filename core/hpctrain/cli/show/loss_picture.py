"""The loss of a run, or of several, as an SVG file whose points are those of metrics.jsonl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hpctrain.errors import ConfigError
from hpctrain.run.output.metrics import Metrics, lost_rows, training_rows
from hpctrain.run.system import files
from hpctrain.ui.picture import MOST, Curve, picture

LOST_LOSS = "lost with its attempt"
"""The curve of steps that a killed attempt trained, and that are not trained again so far."""


def write(
    path: str | Path, title: str, rows: list[dict[str, Any]], evaluated: Sequence[dict[str, Any]] = ()
) -> Path:
    """Write the picture: the loss, that of evaluations where there are any, and apart what is marked as lost.

    Each curve has one point for each row.
    """
    curves = [_curve("loss", training_rows(rows))]
    if evaluated:
        curves.append(_curve("eval_loss", evaluated, "eval_loss"))
    if lost := lost_rows(rows):
        curves.append(_curve(LOST_LOSS, lost))
    target = Path(path)
    files.write(target, picture(f"{title}: loss", curves))
    return target


def write_several(path: str | Path, runs: Mapping[str, Metrics]) -> Path:
    """Write the losses of runs, by their titles, over one pair of axes."""
    if len(runs) > MOST:
        raise ConfigError.of("usage", f"a picture shows {MOST} runs at most, not {len(runs)}")
    curves = [_curve(title, metrics.training) for title, metrics in runs.items()]
    target = Path(path)
    files.write(target, picture("loss", curves))
    return target


def _curve(name: str, rows: Sequence[Mapping[str, Any]], column: str = "loss") -> Curve:
    return Curve(name, [row["step"] for row in rows], [row[column] for row in rows])
