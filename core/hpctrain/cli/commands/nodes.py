"""`hpctrain nodes`: the nodes of a cluster that trainings stay away from, and why."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from hpctrain.cli.commands.clusters import read
from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError, HpctrainError, NotReachable
from hpctrain.inputs import detected
from hpctrain.model.duration import Duration
from hpctrain.plan import chain
from hpctrain.run import bad_nodes
from hpctrain.run.prepare.bind import bound
from hpctrain.run.this_computer import is_here
from hpctrain.runfile.layers.settings import read_settings
from hpctrain.ui import text
from hpctrain.ui.table import Column, Table
from hpctrain_job.bad_nodes import LONGEST, PERSON, BadNode, NodeFinding, NodeReport, Place, is_node

F = TypeVar("F", bound=Callable[..., Any])


def _where(function: F) -> F:
    """--on and --account, before a subcommand or behind it."""
    on = click.option("--on", "cluster", metavar="CLUSTER", help="the cluster; without it, this one")
    account = click.option("--account", metavar="NAME", help="the project whose shared list it is")
    return on(account(function))


@click.group("nodes", invoke_without_command=True)
@_where
@click.pass_context
def command(context: click.Context, cluster: str | None, account: str | None) -> None:
    """List the nodes that died, hung or were unfit under a training, and that later ones stay away from.

    `nodes avoid NODE` adds one, `nodes forgive NODE` takes it off.
    """
    if context.invoked_subcommand is None:
        name, place = _place(context.obj, cluster, account)
        _show(context.obj, name, place.report(time.time()))


@command.command("avoid")
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@click.option("--why", default="", metavar="TEXT", help="what is wrong with it")
@click.option(
    "--for", "duration", default="7d", show_default=True, metavar="TIME", help="how long, 30d at most"
)
@_where
@click.pass_context
def avoid(
    context: click.Context,
    nodes: tuple[str, ...],
    why: str,
    duration: str,
    cluster: str | None,
    account: str | None,
) -> None:
    """Keep trainings away from NODE."""
    place = _place_of_subcommand(context, cluster, account)
    _need_names(nodes)
    now = time.time()
    try:
        seconds = Duration.parse(duration).seconds
    except ValueError as error:
        raise ConfigError.of("usage", f"--for {duration}: {error}", hint="--for 7d") from None
    if seconds > LONGEST:
        raise ConfigError.of("usage", f"--for {duration}: no node is avoided for longer", hint="--for 30d")
    with _writing(place):
        place.add(NodeFinding(node, PERSON, why, now, now + seconds) for node in nodes)
    _done(context.obj, "avoided", nodes)


@command.command("forgive")
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@click.option("--why", default="", metavar="TEXT", help="what was done")
@_where
@click.pass_context
def forgive(
    context: click.Context, nodes: tuple[str, ...], why: str, cluster: str | None, account: str | None
) -> None:
    """Let trainings use NODE again: what was found so far counts no longer."""
    place = _place_of_subcommand(context, cluster, account)
    _need_names(nodes)
    with _writing(place):
        place.forgive(nodes, why, time.time())
    _done(context.obj, "forgiven", nodes)


def _place_of_subcommand(context: click.Context, cluster: str | None, account: str | None) -> Place:
    before = context.parent.params if context.parent else {}
    _, place = _place(context.obj, cluster or before.get("cluster"), account or before.get("account"))
    return place


def _place(out: Out, cluster: str | None, account: str | None) -> tuple[str, Place]:
    facts = read(cluster or detected("--on CLUSTER"), out).cluster
    if not is_here(facts):
        raise NotReachable.of(
            "not-here",
            f"this computer is not a login node of {facts.name}, where its nodes are remembered",
            hint=f"a login node of {facts.name}: hpctrain nodes",
        )
    settings = read_settings(out.environ)
    settings_of_cluster = settings.cluster.get(facts.name, {})
    charged = account or str(settings_of_cluster.get("account") or settings.account)
    loc = chain.bad_nodes_place(facts)
    if loc is None:
        raise ConfigError.of(
            "role", f"{facts.name} has no storage role for what is remembered", where="storage.state"
        )
    roles = {role: str(path) for role, path in settings_of_cluster.items() if role in facts.storage}
    binding = bound(facts, charged, out.environ, roles, roles=(loc.role,), on_cluster=True)
    place = bad_nodes.place_of(facts, binding)
    if place is None:
        where = f"storage.{loc.role}"
        raise ConfigError.of("role", f"the location of {loc.role} is not known here", where=where)
    return facts.name, place


def _need_names(nodes: tuple[str, ...]) -> None:
    for node in nodes:
        if not is_node(node):
            raise ConfigError.of(
                "usage", f"{node!r} is no name of one node", hint="hpctrain nodes avoid nid005017 nid005018"
            )


@contextlib.contextmanager
def _writing(place: Place) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise HpctrainError.of("file", f"cannot write below {place.own_folder}: {reason}") from error


def _done(out: Out, word: str, nodes: tuple[str, ...]) -> None:
    if out.flags.json:
        out.document("nodes-changed", **{word: list(nodes)})
    else:
        out.lines([f"{node} is {word}" for node in nodes])


def _show(out: Out, cluster: str, report: NodeReport) -> None:
    if out.flags.json:
        entries = [_json(entry) for entry in report.nodes]
        out.document("nodes", cluster=cluster, nodes=entries, refused=list(report.refused))
        return
    now = time.time()
    table = Table(
        Column("NODE", style="name"), Column("LEFT"), Column("FOUND"), Column("WHAT"),
        Column("BY", drop=2), Column("EVIDENCE", drop=1),
    )  # fmt: skip
    for entry in report.nodes:
        for finding in entry.findings:
            table.row(
                entry.node,
                text.duration(entry.until - now),
                text.age(finding.at, now),
                finding.kind,
                finding.owner,
                finding.evidence or "-",
            )
    out.lines(table.lines(out.term) if report.nodes else [f"no node of {cluster} is avoided"])
    out.say(*report.refused)


def _json(entry: BadNode) -> dict[str, object]:
    return {
        "node": entry.node,
        "until": round(entry.until),
        "findings": [
            {
                "kind": finding.kind,
                "evidence": finding.evidence,
                "at": round(finding.at),
                "run": finding.run or None,
                "by": finding.owner,
            }
            for finding in entry.findings
        ],
    }
