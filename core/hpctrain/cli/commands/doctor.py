"""`hpctrain doctor`: what this login node says of its cluster's facts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpctrain.cli.commands.clusters import read
from hpctrain.cli.out import Out
from hpctrain.doctor import examination
from hpctrain.doctor.ages import DAYS, age
from hpctrain.doctor.asking import SECONDS, Asker
from hpctrain.doctor.question import Examined, Finding, Verdict
from hpctrain.doctor.site import Site
from hpctrain.errors import ConfigError
from hpctrain.inputs import detected
from hpctrain.model.cluster import Cluster
from hpctrain.render.shell import quoted
from hpctrain.run.prepare.bind import bound
from hpctrain.run.system.tools import Tools
from hpctrain.run.this_computer import host_name, is_here
from hpctrain.runfile.layers.settings import Settings, read_settings
from hpctrain.ui.table import facts

if TYPE_CHECKING:
    from hpctrain.ui.table import Cell

STYLES = {Verdict.OK: "ok", Verdict.DIFFERS: "error", Verdict.UNKNOWN: "", Verdict.SILENT: "warn"}
CAPTURE = "also write what was answered, without your name, account and tokens"
ROLE = "state"
"""Where tokens lie until a task reads them."""
GRACE = 1.0
"""Seconds that a program has to tidy up when its limit is over."""


@click.command("doctor")
@click.argument("cluster", required=False)
@click.option("--on", "on", metavar="CLUSTER", help="the same, as other commands have it")
@click.option("--account", metavar="NAME", help="whose folders and limits; else that of your settings")
@click.option(
    "--seconds", type=click.IntRange(5, 3600), default=SECONDS, show_default=True,
    help="for all questions; on a login node under load, take more",
)  # fmt: skip
@click.option("--capture", type=click.Path(path_type=Path), metavar="FILE", help=CAPTURE)
@click.option("--job", is_flag=True, help="also ask compute nodes, in one job of ten minutes at most")
@click.option("-N", "--nodes", type=click.IntRange(1), metavar="N", help="nodes of that job; one without it")
@click.option("--queue", default="", metavar="NAME", help="its queue")
@click.option(
    "--python", default="", metavar="PATH", help="a Python with torch on the nodes: it measures NCCL or RCCL"
)
@click.option("--all", "everything", is_flag=True, help="also what is ok, each with its source and date")
@click.pass_obj
def command(
    out: Out,
    cluster: str | None,
    on: str | None,
    account: str | None,
    seconds: int,
    capture: Path | None,
    job: bool,
    nodes: int | None,
    queue: str,
    python: str,
    everything: bool,
) -> int:
    """Ask this login node every fact of its cluster: no job, nothing written, a minute at most.

    Tokens that a killed job left on the disk are deleted, once its step is over.

    With --job compute nodes are asked, too, what they alone can tell: a job and its run directory.

    Without a name it is the cluster whose login node this is. The exit code is 7 when something differs from
    the facts, 6 when something could not be asked, else 0.
    """
    if (nodes or queue or python) and not job:
        message = "--nodes, --queue and --python are of the job that --job submits"
        raise ConfigError.of("usage", message, hint="--job -N 2")
    if cluster and on and cluster != on:
        raise ConfigError.of("usage", f"two clusters are named, {cluster} and {on}", hint=f"--on {on}")
    site_facts = read(cluster or on or detected("hpctrain doctor CLUSTER"), out).cluster
    charged = account or _account(read_settings(out.environ), site_facts.name)
    site = examination.site_of(site_facts, out.environ, charged)
    if not is_here(site_facts):
        out.say(f"{host_name()} does not look like a login node of {site_facts.name}; these are its answers")
    asker = Asker(Tools(out.environ, keep=site_facts.exported, grace=GRACE), seconds)
    answers = list(asker.answers(examination.questions(site)))
    findings = (*examination.examined(answers), *_purges(site), *_tokens(out, site))
    if capture:
        from hpctrain.doctor.capture import write

        write(capture, site, answers)
        out.say(f"{capture}: every answer, without your name, account and tokens; read it before you send it")
    if job:
        from hpctrain.cli.shared.asking_nodes import examined

        findings = (*findings, *examined(out, site, nodes or 1, queue, python))
    if out.flags.json:
        rows = [_row(finding, site_facts) for finding in findings]
        counts = {verdict.value: count for verdict, count in examination.counted(findings)}
        out.document("doctor", cluster=site_facts.name, counts=counts, findings=rows)
    else:
        out.lines(_page(findings, site_facts, out, everything))
    return examination.exit_code(findings)


def _purges(site: Site) -> Iterator[Finding]:
    """What the site deletes of your runs within a week; the facts say nothing else, so nothing differs."""
    storage = site.cluster.storage
    days = {role: storage[role].purge_days or 0 for role in ("runs", "checkpoints") if role in storage}
    roots = {role: root for role in days if days[role] and (root := _root(site, role))}
    if not roots:
        return
    from hpctrain.cli.show.run_facts import stamp
    from hpctrain.run.watch.purges import purges

    for purge in purges(roots, days, site.environ):
        yield Finding(
            area="storage",
            fact=f"purge of {purge.role}",
            verdict=Verdict.UNKNOWN,
            expected=f"what nobody used for {days[purge.role]} days",
            found=f"{purge.run.title}: {purge.folder} loses files from {stamp(purge.at)} on",
            source=storage[purge.role].source,
            todo="copy what you still need to a folder that is not purged",
        )


def _root(site: Site, role: str) -> Path | None:
    """Where a role lies on this machine; None where that is not known, which the questions of storage say."""
    if role not in site.cluster.storage:
        return None
    try:
        binding = bound(site.cluster, site.account, site.environ, roles=(role,), on_cluster=True)
    except ConfigError:
        return None
    root = binding.roots[role]
    return Path(root) if isinstance(root, str) else None


def _tokens(out: Out, site: Site) -> Iterator[Finding]:
    """Delete what jobs left of tokens; a line for each run that had some, and for each that is gone."""
    from hpctrain.run.watch.leftovers import remove_tokens, tokens_of_nobody

    root = _root(site, ROLE)
    if root is None:
        return
    for title, steps in remove_tokens(root, site.environ):
        text = f"those of {title} ({', '.join(steps)}) were still on the disk, and are deleted"
        out.say(f"tokens: {text}")
        yield Finding(area="tokens", fact="of runs that are over", verdict=Verdict.OK, found=text)
    for folder in tokens_of_nobody(root, site.environ):
        text = f"{folder} holds tokens, and no run of yours is called so"
        todo = f"rm -r {quoted(str(folder))}      (if none of its jobs waits or runs)"
        yield Finding(
            area="tokens", fact="of runs that are gone", verdict=Verdict.DIFFERS, found=text, todo=todo
        )


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
    listed = findings if everything else [f for f in findings if f.verdict is not Verdict.OK]
    for area in dict.fromkeys(finding.area for finding in listed):
        pairs = (pair for finding in listed if finding.area == area for pair in _pairs(finding, cluster))
        lines += ["", term.paint("heading", area), *facts(pairs, term)]
    counts = ", ".join(f"{count} {verdict.value}" for verdict, count in examination.counted(findings))
    return [*lines, "", counts + ("" if everything else " (--all shows what is ok, too)")]


def _pairs(finding: Finding, cluster: Cluster) -> Iterator[tuple[str, Cell]]:
    """The verdict and its fact, and below them what was expected, what was found and what to do."""
    source = cluster.source_of(finding.source)
    origin = f" ({source.id}, {source.checked})" if source and finding.expected else ""
    yield finding.verdict.value, (STYLES[finding.verdict], finding.fact)
    for label, text in (
        ("expected", finding.expected + origin),
        ("found", finding.found),
        ("to do", finding.todo),
    ):
        if text:
            yield f"  {label}", text
