"""The report of runs as one HTML file: what a person asks of a training, from the top in that order."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hpctrain.cli.show.loss_picture import LOST_LOSS
from hpctrain.cli.show.run_facts import cost, lost_text, outcome, stamp
from hpctrain.model.job import State
from hpctrain.run.disk.request import Rows, differences
from hpctrain.run.outcome.goodput import Attempt, goodput
from hpctrain.run.outcome.summary import Summary
from hpctrain.run.output.metrics import lost_rows
from hpctrain.ui import text
from hpctrain.ui.chart import COLORS, Chart
from hpctrain.ui.markup import escaped, facts, folded, heading, lines, page, table
from hpctrain.ui.picture import Curve
from hpctrain.versions import DISTRIBUTION

PLOTTED = (
    ("loss", "loss"),
    ("eval_loss", "evaluation loss"),
    ("lr", "learning rate"),
    ("tokens_per_s", "tokens/s"),
    ("grad_norm", "gradient norm"),
    ("mfu", "MFU"),
)
"""Column of metrics.jsonl, and what its plot is called."""
ATTEMPT = (
    "attempt", "job", "began", "for", "nodes", "steps", "ended by", "start-up", "training", "again", "rest",
)  # fmt: skip
"""What is told of an attempt; `again` is what a later one did once more."""
NUMBERS = 50
"""Rows of metrics that are given as numbers too."""


def report(summaries: Sequence[Summary], environ: Mapping[str, str]) -> str:
    """The text of the file."""
    charts = list(_charts(summaries))
    titles = [summary.run.title for summary in summaries]
    parts = [
        _head(summaries),
        *_at_a_glance(summaries),
        *_plots(summaries, charts),
        *_diagnoses(summaries, environ),
        *_attempts(summaries),
        *_checkpoints(summaries),
        *_settings(summaries),
        *_versions(summaries),
        f"<footer>written by hpctrain {DISTRIBUTION} on {escaped(stamp(time.time()))}</footer>",
    ]
    return page(
        f"{', '.join(titles)}: hpctrain report",
        parts,
        style=_beside("page.css"),
        script=_beside("page.js"),
        data=[chart.data() for chart in charts],
    )


def _beside(name: str) -> str:
    """A file of the page's own, as it lies beside the code that draws charts."""
    from hpctrain import ui

    return (Path(ui.__file__).parent / name).read_text(encoding="utf-8")


def _head(summaries: Sequence[Summary]) -> str:
    if len(summaries) > 1:
        names = ", ".join(summary.run.title for summary in summaries)
        return f'<h1>{len(summaries)} runs</h1><p class="lead">{escaped(names)}</p>'
    (summary,) = summaries
    word = escaped(summary.state.value)
    return (
        f"<h1>{escaped(summary.run.title)}</h1>"
        f'<p class="lead"><b class="{word}">{word}</b> on {escaped(summary.cluster)}: '
        f'{escaped(_sentence(summary))}</p><p class="soft">{escaped(str(summary.run.path))}</p>'
    )


def _sentence(summary: Summary) -> str:
    """`step 240 of 240, loss 1.163, 11 node-hours`."""
    parts = []
    if summary.training:
        planned = f" of {text.count(summary.planned_steps)}" if summary.planned_steps else ""
        parts.append(f"step {text.count(summary.training[-1]['step'])}{planned}")
        parts.append(f"loss {text.number(summary.training[-1]['loss'])}")
    if summary.evaluations:
        parts.append(f"evaluation loss {text.number(summary.evaluations[-1]['eval_loss'])}")
    if summary.node_hours is not None:
        parts.append(f"{text.hours(summary.node_hours)} node-hours")
    share = goodput(summary.attempts)
    if share is not None:
        parts.append(f"goodput {text.percent(share, places=1)}")
    return ", ".join(parts) or "nothing measured yet"


def _at_a_glance(summaries: Sequence[Summary]) -> Iterator[str]:
    rows = [dict([("cluster", s.cluster), *outcome(s), *cost(s)]) for s in summaries]
    yield heading("Summary")
    if len(rows) == 1:
        yield facts(rows[0].items())
        return
    names = list(rows[0])
    yield table(
        ["run", *names],
        [[s.run.title, *row.values()] for s, row in zip(summaries, rows, strict=True)],
        numbers=range(3, len(names) + 1),
    )


def _charts(summaries: Sequence[Summary]) -> Iterator[Chart]:
    """A chart for each column that any run has."""
    for column, title in PLOTTED:
        curves = []
        for summary in summaries:
            source = summary.evaluations if column == "eval_loss" else summary.training
            name = text.clean(summary.run.title) if len(summaries) > 1 else title
            curves.append(_curve(name, source, column))
        if column == "loss" and len(summaries) == 1 and (gone := lost_rows(summaries[0].rows)):
            curves.append(_curve(LOST_LOSS, gone, column))
        if any(curve.xs for curve in curves):
            yield Chart(title, curves, _marks(summaries))


def _curve(name: str, source: Sequence[Mapping[str, Any]], column: str) -> Curve:
    rows = [row for row in source if row.get(column) is not None]
    return Curve(name, [row["step"] for row in rows], [row[column] for row in rows])


def _marks(summaries: Sequence[Summary]) -> list[tuple[float, str]]:
    """Where later attempts began, of one run."""
    if len(summaries) > 1:
        return []
    began = [attempt.first_step for attempt in summaries[0].attempts]
    return [
        (step, f"attempt {number}") for number, step in enumerate(began, 1) if step is not None and number > 1
    ]


def _plots(summaries: Sequence[Summary], charts: Sequence[Chart]) -> Iterator[str]:
    yield heading("Plots")
    if not charts:
        yield "<p>There is no row of metrics yet.</p>"
        return
    if len(summaries) > 1:
        keys = (
            f'<li><svg viewBox="0 0 34 10" aria-hidden="true"><path class="line c{at % COLORS}" d="M1 5H33"/>'
            f"</svg>{escaped(summary.run.title)}</li>"
            for at, summary in enumerate(summaries)
        )
        yield f'<ul class="legend">{"".join(keys)}</ul>'
    yield '<div class="tools"></div><div class="charts">'
    yield from (chart.html(at) for at, chart in enumerate(charts))
    yield "</div>"
    for summary in summaries:
        if lost := lost_text(lost_rows(summary.rows)):
            drawn = "; the dashed curve" if len(summaries) == 1 else ""
            yield f"<p>{escaped(summary.run.title)}: {escaped(lost)}{drawn}.</p>"
        yield _numbers(summary)


def _numbers(summary: Summary) -> str:
    """Rows over the whole of the training, the last one among them."""
    rows = summary.training
    every = max(1, -(-len(rows) // NUMBERS))
    evaluated = {row["step"]: row["eval_loss"] for row in summary.evaluations}
    sampled = [
        {**row, "eval_loss": evaluated.get(row["step"])}
        for at, row in enumerate(reversed(rows))
        if at % every == 0
    ][::-1]
    names = [name for name, _ in PLOTTED if any(row.get(name) is not None for row in sampled)]
    body = [[text.count(row["step"]), *(_cell(row, name) for name in names)] for row in sampled]
    title = f"{summary.run.title} in numbers, {len(sampled)} of {text.count(len(rows))} rows"
    return folded(title, table(["step", *names], body, range(len(names) + 1)))


def _cell(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return text.ABSENT if value is None else text.number(value)


def _diagnoses(summaries: Sequence[Summary], environ: Mapping[str, str]) -> Iterator[str]:
    """Why steps failed, of the runs that have such."""
    from hpctrain.run.diagnosis import diagnose

    for summary in summaries:
        failed = [step for step in summary.steps if step.state is State.FAILED]
        if not failed:
            continue
        yield heading(f"Why {summary.run.title} failed" if len(summaries) > 1 else "Why it failed")
        rules = diagnose.rules_of(summary.run, environ)
        for step in failed:
            diagnosis = diagnose.diagnose(summary.run, step, rules)
            yield f"<p>Step {escaped(step.step)}: {escaped(step.reason or 'it failed')}</p>"
            for cause in diagnosis.causes:
                pairs = [("cause", f"{cause.rule.sure}: {cause.rule.cause}"), ("fix", cause.rule.fix),
                         ("rule", f"{cause.rule.name}, from {cause.rule.source}")]  # fmt: skip
                yield table(["", ""], [pair for pair in pairs if pair[1]])
                yield lines([*cause.evidence.before[-5:], cause.evidence.text])
            if not diagnosis.causes:
                yield "<p>No rule knows this failure.</p>"
                if diagnosis.first is not None:
                    yield lines([*diagnosis.first.before, diagnosis.first.text])


def _attempts(summaries: Sequence[Summary]) -> Iterator[str]:
    several = len(summaries) > 1
    listed = [summary for summary in summaries if summary.attempts]
    if listed:
        yield heading("Attempts and goodput")
    for summary in listed:
        if several:
            yield f"<h3>{escaped(summary.run.title)}</h3>"
        yield table(
            [
                "attempt",
                "job",
                "began",
                "for",
                "nodes",
                "steps",
                "ended by",
                "start-up",
                "training",
                "again",
                "rest",
            ],
            [_attempt_row(number, attempt) for number, attempt in enumerate(summary.attempts, 1)],
            numbers=(0, 3, 4, 5, 7, 8, 9, 10),
        )
        share = goodput(summary.attempts)
        if share is not None:
            yield (
                f"<p>Goodput {text.percent(share, places=1)}: the share of the nodes' time in which "
                "steps were done that no later attempt did again.</p>"
            )


def _attempt_row(number: int, attempt: Attempt) -> list[str]:
    span = attempt.span
    steps = text.ABSENT
    if attempt.first_step is not None and attempt.last_step is not None:
        steps = f"{text.count(attempt.first_step)} to {text.count(attempt.last_step)}"
    parts = (attempt.startup_s, attempt.kept_s, attempt.repeated_s, attempt.rest_s)
    return [
        str(number),
        span.job,
        stamp(span.began),
        text.duration(span.seconds),
        str(span.nodes),
        steps,
        attempt.ended_by,
        *(text.ABSENT if part is None else text.duration(part) for part in parts),
    ]


def _checkpoints(summaries: Sequence[Summary]) -> Iterator[str]:
    rows = [
        [
            *([summary.run.title] if len(summaries) > 1 else []),
            text.count(saved.step),
            text.size(saved.size),
            saved.state_words,
            " ".join(path.parent.name for path in saved.exports) or text.ABSENT,
            str(saved.path),
        ]
        for summary in summaries
        for saved in summary.checkpoints
    ]
    if rows:
        yield heading("Checkpoints")
        names = [*(["run"] if len(summaries) > 1 else []), "step", "size", "state", "exported", "where"]
        yield table(names, rows, numbers=(len(names) - 5, len(names) - 4))


def _settings(summaries: Sequence[Summary]) -> Iterator[str]:
    tables = [summary.request.settings for summary in summaries]
    if len(summaries) == 1:
        yield heading("Settings")
        yield table(["key", "value"], list(tables[0].items()))
        return
    different, equal_keys = differences(tables)
    yield heading("Settings that differ")
    yield _side_by_side(summaries, different) if different else "<p>The runs were asked for the same.</p>"
    yield _agreement("settings", equal_keys, tables[0])


def _versions(summaries: Sequence[Summary]) -> Iterator[str]:
    yield heading("Environment and versions")
    tables = [{"digest of the plan": s.request.digest[:12], **s.request.versions} for s in summaries]
    if len(summaries) == 1:
        yield table(["name", "version"], list(tables[0].items()))
        variables = summaries[0].request.variables
        rows = table(["name", "value", "set by", "why"], variables)
        yield folded(f"{len(variables)} variables of the training", rows)
        return
    different, equal_keys = differences(tables)
    if different:
        yield _side_by_side(summaries, different)
    yield _agreement("versions", equal_keys, tables[0])


def _side_by_side(summaries: Sequence[Summary], rows: Rows) -> str:
    return table(
        ["", *(summary.run.title for summary in summaries)], [[name, *cells] for name, cells in rows]
    )


def _agreement(kind: str, names: Sequence[str], values: Mapping[str, str]) -> str:
    rows = [(name, values[name]) for name in names]
    return folded(f"{len(names)} {kind} that are the same", table(["", ""], rows))
