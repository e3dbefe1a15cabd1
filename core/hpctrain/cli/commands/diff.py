"""`hpctrain diff`: compare the same run on several clusters, or runs that were started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from hpctrain.cli.out import Out
from hpctrain.cli.shared.opening import layer_options, many
from hpctrain.cli.show import side_by_side
from hpctrain.errors import ConfigError, HpctrainError
from hpctrain.plan.diff import diff


@click.command("diff")
@click.argument("references", nargs=-1, metavar="[RUN_FILE | RUN RUN...]")
@layer_options
@click.pass_obj
def command(
    out: Out, references: tuple[str, ...], on: tuple[str, ...], sets: tuple[str, ...], account: str | None
) -> int:
    """Show what differs: between the clusters of --on, or between runs: settings, versions, results.

    Of a run file on clusters: resources, steps, commands, variables, scheduler words.
    """
    if len(references) < 2:
        return _clusters(out, Path(references[0]) if references else None, on, sets, account)
    if on or sets or account:
        option = "--on" if on else "--set" if sets else "--account"
        raise ConfigError.of(
            "usage",
            f"{option} goes with one run file, not with runs",
            hint=f"hpctrain diff {' '.join(references)}",
        )
    return _runs(out, references)


def _clusters(
    out: Out, run_file: Path | None, on: tuple[str, ...], sets: tuple[str, ...], account: str | None
) -> int:
    plans = []
    for _, session in many(run_file, on, sets, account):
        if isinstance(session, HpctrainError):
            raise session
        plans.append(session.plan())
    if len(plans) < 2:
        raise ConfigError.of("usage", "diff compares two clusters or more", hint="--on A --on B")
    rows, equal_names = diff(plans)
    clusters = [plan.cluster.name for plan in plans]
    if out.flags.json:
        out.document("diff", clusters=clusters, equal=not rows, rows=dict(rows), same=equal_names)
        return 0
    is_short = len(plans) > 2
    out.lines(side_by_side.lines(clusters, rows, out.term, len(equal_names), is_short=is_short))
    if is_short and out.term.clips:
        out.next(f"hpctrain diff --on {clusters[0]} --on {clusters[1]}")
    return 0


def _runs(out: Out, references: Sequence[str]) -> int:
    from hpctrain.cli.show.run_facts import cost, outcome
    from hpctrain.run.disk.request import differences
    from hpctrain.run.find import find
    from hpctrain.run.outcome.summary import Summary

    summaries = [Summary(find(reference, out.environ), out.environ) for reference in references]
    titles = [summary.run.title for summary in summaries]
    requests = [summary.request for summary in summaries]
    clusters: list[Mapping[str, str]] = [{"cluster": s.cluster, "digest": s.run.digest8} for s in summaries]
    settings, equal_keys = differences([{**c, **r.settings} for c, r in zip(clusters, requests, strict=True)])
    versions, equal_versions = differences([request.versions for request in requests])
    results = [dict(pair for part in (outcome, cost) for pair in part(summary)) for summary in summaries]
    result_rows = [(name, [result[name] for result in results]) for name in results[0]]
    if out.flags.json:
        out.document(
            "diff",
            runs=titles,
            equal=not settings and not versions,
            rows=dict(settings) | dict(versions),
            results=dict(result_rows),
            same=[*equal_keys, *equal_versions],
        )
        return 0
    equal_count = len(equal_keys) + len(equal_versions)
    out.lines(side_by_side.lines(titles, [*settings, *versions], out.term, equal_count))
    out.lines(["", *side_by_side.lines(titles, result_rows, out.term)])
    return 0
