"""The picture of a run that is watched, as rows for a terminal of any size."""

from __future__ import annotations

import time
from collections.abc import Sequence

from attrs import frozen

from hpctrain.cli.show import live_line
from hpctrain.cli.show.states import STYLES, reason_of
from hpctrain.run.steps.status import StepState
from hpctrain.run.watch.vitals import Vitals
from hpctrain.ui import text
from hpctrain.ui.plot import plot
from hpctrain.ui.table import Column, Table
from hpctrain.ui.term import Term

KEYS = "q leave"
LEAST_PLOT, MOST_PLOT = 3, 14
LEAST_LOG = 4
"""Rows of the log, its heading among them, below which it is left out."""
WIDE = 120
"""From here on the steps stand beside the curve."""


@frozen(kw_only=True)
class View:
    """What there is to see of one run."""

    vitals: Vitals
    steps: tuple[StepState, ...]
    losses: Sequence[tuple[int, float]]
    log_name: str = ""
    log: Sequence[str] = ()


def rows(view: View, now: float, term: Term, height: int) -> list[str]:
    """Rows that fit: name, numbers and keys always, the curve, the log and the steps as there is room."""
    top = _head(view.vitals, now, term)
    foot = _foot(now, term)
    room = max(0, height - len(top) - 1)
    beside = term.width >= WIDE and bool(view.losses)
    split = term.width * 3 // 5
    steps = _steps(view, term.narrowed(term.width - split - 2) if beside else term)
    if not beside and len(steps) + LEAST_PLOT + 2 + LEAST_LOG > room:
        steps = []
    curve_room = room - (0 if beside else len(steps)) - min(LEAST_LOG, len(view.log) + 1)
    curve = _curve(view, term, curve_room, split if beside else term.width)
    middle = _side_by_side(curve, steps, split + 2) if beside else [*curve, *steps]
    middle = middle[:room]
    log = _log(view, term, room - len(middle))
    body = [*top, *middle, *log][: max(0, height - 1)]
    return [*body, *[""] * (height - 1 - len(body)), foot]


def overview(all_vitals: Sequence[Vitals], now: float, term: Term, height: int) -> list[str]:
    """A row for each run that lives."""
    table = Table(
        Column("RUN", style="name"),
        Column("ON", drop=5),
        Column("STATE"),
        Column("STEP", right=True),
        Column("LEFT", right=True),
        Column("LOSS", right=True, drop=1),
        Column("TOKENS/S", right=True, drop=3),
        Column("MFU", right=True, drop=4),
        Column("NODES", right=True, drop=6),
        Column("NOTE", drop=2),
    )
    for vitals in all_vitals[: max(1, height - 3)]:
        table.row(*_overview_row(vitals, now))
    lines = table.lines(term) if all_vitals else ["no run lives"]
    hidden = len(all_vitals) - max(1, height - 3)
    lines += [f"and {hidden} more"] if hidden > 0 else []
    body = lines[: height - 1]
    return [*body, *[""] * (height - 1 - len(body)), _foot(now, term)]


def _overview_row(vitals: Vitals, now: float) -> tuple[str | tuple[str, str] | None, ...]:
    trained = vitals.trained
    has_rows = trained.step is not None
    step = text.short(trained.step) if has_rows else "-"
    notes = (part.text for part in (*live_line.waiting(vitals, now), *live_line.reason(vitals)))
    return (
        vitals.title,
        vitals.cluster,
        (STYLES.get(vitals.state, ""), vitals.state.value),
        f"{step}/{text.short(trained.steps)}" if has_rows and trained.steps else step,
        live_line.left(vitals, now) or "-",
        text.number(trained.loss) if has_rows else "-",
        text.short(trained.tokens_per_s) if trained.tokens_per_s is not None else "-",
        text.percent(trained.mfu) if trained.mfu is not None else "-",
        str(vitals.nodes or "-"),
        ", ".join(notes) or "-",
    )


def _head(vitals: Vitals, now: float, term: Term) -> list[str]:
    """The line of the run, broken where the terminal ends."""
    word = vitals.state.value.upper()
    parts = [f"{vitals.title} on {vitals.cluster}", word, *(p.text for p in live_line.parts_of(vitals, now))]
    lines = [""]
    for part in map(term.text, parts):
        joined = f"{lines[-1]}{live_line.GAP}{part}" if lines[-1] else part
        if text.cells(joined) <= term.width:
            lines[-1] = joined
        else:
            lines.append(text.clip(part, term.width, term.mark))
    painted = term.paint(STYLES.get(vitals.state, "heading"), word)
    return [line.replace(word, painted, 1) for line in lines if line]


def _curve(view: View, term: Term, room: int, width: int) -> list[str]:
    """The loss, where there is room for it."""
    height = min(MOST_PLOT, room - 2, max(LEAST_PLOT, room // 2))
    if not view.losses or height < LEAST_PLOT:
        return []
    xs, ys = [x for x, _ in view.losses], [y for _, y in view.losses]
    total = view.vitals.trained.steps
    end = total if total and total <= 4 * xs[-1] else None  # a point in the corner is no curve
    return plot("loss", xs, ys, term, width=width, height=height, x_end=end)


def _steps(view: View, term: Term) -> list[str]:
    table = Table(Column("STEP", style="name"), Column("STATE"), Column("JOB", drop=1), Column("WHY", drop=2))
    for step in view.steps:
        state = (STYLES.get(step.state, ""), step.state.value)
        table.row(step.step, state, step.job or "-", reason_of(step) or "-")
    return table.lines(term)


def _side_by_side(left: Sequence[str], right: Sequence[str], width: int) -> list[str]:
    """Two blocks; the right one begins at the column `width`, and is cut where the terminal ends."""
    count = max(len(left), len(right))
    pairs = zip([*left, *[""] * (count - len(left))], [*right, *[""] * (count - len(right))], strict=True)
    return [f"{a}\x1b[{width + 1}G{b}" if b else a for a, b in pairs]


def _log(view: View, term: Term, room: int) -> list[str]:
    """The last lines, whole rows of the terminal each."""
    if room < 2 or not view.log_name:
        return []
    heading = term.paint("heading", term.fit(f"log of {view.log_name}"))
    last = [term.fit(term.text(line)) for line in view.log[-(room - 1) :]]
    return [heading, *last]


def _foot(now: float, term: Term) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(now))
    return KEYS + clock.rjust(max(9, term.width - len(KEYS)))
