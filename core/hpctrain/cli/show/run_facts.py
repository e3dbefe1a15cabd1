"""What a run reached and cost, as the same words wherever it is shown."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpctrain.run.outcome.spent import moment
from hpctrain.run.outcome.summary import Summary
from hpctrain.ui import text


def outcome(summary: Summary) -> Iterator[tuple[str, str]]:
    """How far it came, and with what result."""
    trained, evaluated = summary.training, summary.evaluations
    yield "state", summary.state.value
    yield "step", text.count(summary.metrics.last["step"]) if trained else text.ABSENT
    yield "loss", _number(summary.metrics.last.get("loss")) if trained else text.ABSENT
    yield "lowest loss", _lowest(summary)
    yield "eval_loss", _number(evaluated[-1]["eval_loss"]) if evaluated else text.ABSENT
    yield "tokens/s", _number(summary.median("tokens_per_s"))
    mfu = summary.median("mfu")
    yield "mfu", text.ABSENT if mfu is None else text.percent(mfu)


def cost(summary: Summary) -> Iterator[tuple[str, str]]:
    """Since when, how long and on how many nodes."""
    spans = summary.spans
    created = moment(summary.request.created)
    yield "started", stamp(created) if created else text.UNKNOWN
    yield "held nodes for", text.duration(sum(s.seconds for s in spans), rough=True) if spans else text.ABSENT
    yield "nodes", " ".join(map(str, sorted({span.nodes for span in spans}))) or text.ABSENT
    yield "node-hours", text.hours(summary.node_hours)


def lost_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """`steps 33 to 50 are lost …`, of the rows that are; empty where there are none."""
    if not rows:
        return ""
    first, last = rows[0]["step"], rows[-1]["step"]
    steps = f"step {first} is" if first == last else f"steps {first} to {last} are"
    return f"{steps} lost: their attempt was killed, and the next one began before them"


def stamp(moment: float) -> str:
    """Local time to the minute, with its zone: these words outlive the day on which they are read."""
    return time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(moment)).strip()


def _lowest(summary: Summary) -> str:
    if not summary.training:
        return text.ABSENT
    row = min(summary.training, key=lambda row: row["loss"])
    return f"{text.number(row['loss'])} at {text.count(row['step'])}"


def _number(value: float | None) -> str:
    return text.ABSENT if value is None else text.number(value)
