"""`hpctrain doctor`: what this login node says of its cluster's facts."""

from __future__ import annotations

from collections.abc import Iterable

import click

from hpctrain.cli.commands.clusters import read
from hpctrain.cli.out import Out
from hpctrain.doctor import examination
from hpctrain.doctor.ages import DAYS, age
from hpctrain.doctor.asking import Asker
from hpctrain.doctor.question import Examined, Finding, Verdict
from hpctrain.model.cluster import Cluster
from hpctrain.run.this_computer import host_name, is_here
from hpctrain.run.tools import Tools
from hpctrain.runfile.layers.settings import Settings, read_settings
from hpctrain.session import detected
from hpctrain.ui.table import Column, Table

STYLES = {Verdict.OK: "ok", Verdict.DIFFERS: "error", Verdict.UNKNOWN: "", Verdict.SILENT: "warn"}
GRACE = 1.0
"""Seconds that a program has to tidy up when its limit is over."""


@click.command("doctor")
@click.argument("cluster", required=False)
@click.option("--account", metavar="NAME", help="whose folders and limits; else that of your settings")
@click.option("--all", "everything", is_flag=True, help="also what is ok, each with its source and date")
@click.pass_obj
def command(out: Out, cluster: str | None, account: str | None, everything: bool) -> int:
    """Ask this login node every fact of its cluster: no job, nothing written, a minute at most.

    Without a name it is the cluster whose login node this is. The exit code is 7 when something differs from
    the facts, 6 when something could not be asked, else 0.
    """
    facts = read(cluster or detected(), out).cluster
    charged = account or _account(read_settings(out.environ), facts.name)
    site = examination.site_of(facts, out.environ, charged)
    if not is_here(facts):
        out.say(
            f"{host_name()} is no login node of {facts.name} by its name: what follows is of this machine"
        )
    asker = Asker(Tools(out.environ, keep=facts.exported, grace=GRACE))
    findings = examination.examined(asker.answers(examination.questions(site)))
    if out.flags.json:
        rows = [_row(finding, facts) for finding in findings]
        counts = {verdict.value: count for verdict, count in examination.counted(findings)}
        out.document("doctor", cluster=facts.name, counts=counts, findings=rows)
    else:
        out.lines(_page(findings, facts, out, everything))
    return examination.exit_code(findings)


def _account(settings: Settings, cluster: str) -> str:
    return str(settings.cluster.get(cluster, {}).get("account") or settings.account)


def _row(finding: Finding, cluster: Cluster) -> dict[str, object]:
    source = cluster.source_of(finding.source)
    days = age(source) if source else None
    return {
        "area": finding.area,
        "fact": finding.fact,
        "verdict": finding.verdict.value,
        "expected": finding.expected,
        "found": finding.found,
        "source": finding.source or None,
        "checked": source.checked if source else None,
        "stale": days is not None and days > DAYS,
        "todo": finding.todo,
    }


def _page(findings: Examined, cluster: Cluster, out: Out, everything: bool) -> list[str]:
    term = out.term
    lines = [term.paint("heading", f"{cluster.title} ({cluster.name}), as {host_name()} answers")]
    shown = findings if everything else [f for f in findings if f.verdict is not Verdict.OK]
    for area in dict.fromkeys(finding.area for finding in shown):
        table = _table(cluster, [finding for finding in shown if finding.area == area])
        lines += ["", term.paint("heading", area), *table.lines(term)]
    todo = [f for f in shown if f.todo and (everything or f.verdict in (Verdict.DIFFERS, Verdict.SILENT))]
    if todo:
        lines += ["", term.paint("heading", "what to do")]
        lines += [line for finding in todo for line in (f"{finding.fact}:", f"  {finding.todo}")]
    counts = ", ".join(f"{count} {verdict.value}" for verdict, count in examination.counted(findings))
    return [*lines, "", counts + ("" if everything else " (--all shows every line)")]


def _table(cluster: Cluster, findings: Iterable[Finding]) -> Table:
    table = Table(
        Column("VERDICT"),
        Column("FACT", style="name"),
        Column("EXPECTED"),
        Column("FOUND"),
        Column("SOURCE", drop=2),
        Column("CHECKED", drop=1),
    )
    for finding in findings:
        source = cluster.source_of(finding.source)
        verdict = (STYLES[finding.verdict], finding.verdict.value)
        checked = source.checked if source else None
        table.row(
            verdict,
            finding.fact,
            finding.expected or None,
            finding.found or None,
            finding.source or None,
            checked,
        )
    return table
