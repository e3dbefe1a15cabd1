"""`hpctrain clusters`: what is installed; with a name its facts, their sources and layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError, HpctrainError
from hpctrain.hooks import load
from hpctrain.hooks.scan import names
from hpctrain.runfile.facts import Facts, installed_site_file, load_facts, site_file
from hpctrain.runfile.layers.settings import read_settings
from hpctrain.ui.table import Column, Table, facts


@click.command("clusters")
@click.argument("name", required=False)
@click.option("--facts", "everything", is_flag=True, help="every fact with its layer and date")
@click.option("--layers", is_flag=True, help="which files the facts were read from")
@click.option("--stale", is_flag=True, help="sources that nobody has looked up for 180 days, and their facts")
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="what differs in a file of `doctor --capture`, as a patch",
)
@click.pass_obj
def command(
    out: Out, name: str | None, everything: bool, layers: bool, stale: bool, against: Path | None
) -> int:
    """List the installed clusters, or show one: places, queues, storage, sources."""
    if stale:
        from hpctrain.cli.show.stale import show

        return show(out, {cluster: read(cluster, out) for cluster in ([name] if name else names("clusters"))})
    if against:
        from hpctrain.cli.show import against as patch

        if name is None:
            raise ConfigError.of("usage", "--against is about one cluster: name it")
        return patch.show(out, read(name, out).cluster, against)
    if name is None:
        return _list(out)
    cluster_facts = read(name, out)
    if out.flags.json:
        out.document("cluster", name=name, facts=_rows(cluster_facts), files=list(cluster_facts.files))
    elif everything:
        out.lines(_facts(cluster_facts).lines(out.term))
    else:
        out.lines(_page(cluster_facts, out))
    if layers and not out.flags.json:
        out.lines(["", *facts([("read", file) for file in cluster_facts.files], out.term)])
    return 0


def read(name: str, out: Out) -> Facts:
    """The facts of a cluster with the site's and the user's layers."""
    module = load.load(load.find("clusters", name))
    return load_facts(
        Path(str(module.__file__)).parent,
        site=site_file(name, out.environ),
        installed=installed_site_file(name),
        settings=read_settings(out.environ),
    )


def _list(out: Out) -> int:
    rows: list[dict[str, Any]] = []
    for name in names("clusters"):
        try:
            cluster = read(name, out).cluster
        except HpctrainError as error:  # one broken cluster hides no other
            rows.append({"name": name, "broken": str(error)})
            continue
        hardware = cluster.hardware
        gpus = f"{hardware.gpus_per_node} x {hardware.gpu}" if hardware.gpus_per_node else "CPU"
        checked = max((s.checked for s in cluster.source), default="-")
        rows.append(
            {"name": name, "title": cluster.title, "node": gpus, "nodes": hardware.nodes, "checked": checked}
        )
    if out.flags.json:
        out.document("clusters", clusters=rows)
        return 0
    table = Table(
        Column("CLUSTER", style="name"),
        Column("MACHINE", drop=2),
        Column("NODE"),
        Column("NODES", right=True, drop=3),
        Column("CHECKED", drop=1),
    )
    for row in rows:
        if "broken" in row:
            table.row(row["name"], ("error", row["broken"]), "-", "-", "-")
        else:
            table.row(row["name"], row["title"], row["node"], f"{row['nodes']:,}", row["checked"])
    out.lines(table.lines(out.term))
    return 0


def _page(cluster_facts: Facts, out: Out) -> list[str]:
    cluster, term = cluster_facts.cluster, out.term
    places = Table(Column("PLACE", style="name"), Column("WHERE"), Column("HAS"), Column("ARCH", drop=1))
    for place in cluster.place:
        has = " ".join(sorted(n.value for n in place.provides))
        places.row(place.name, "here" if place.here else "job", has, place.arch or cluster.arch)
    queues = Table(
        Column("QUEUE", style="name"),
        Column("NODES"),
        Column("LONGEST", right=True),
        Column("CHECKED", drop=1),
        Column("SURE", drop=2),
    )
    for queue in cluster.queue:
        top = str(queue.max_nodes) if queue.max_nodes else "any"
        source = cluster.source_of(queue.source)
        queues.row(
            queue.name,
            f"{queue.min_nodes}-{top}",
            queue.max_time.short if queue.max_time else "-",
            source.checked if source else "-",
            "yes" if queue.sure else "no",
        )
    roles = Table(
        Column("ROLE", style="name"),
        Column("PATH"),
        Column("QUOTA", right=True, drop=1),
        Column("PURGE", right=True),
    )
    for role, storage in cluster.storage.items():
        quota = f"{storage.quota_gb:,.0f} GB" if storage.quota_gb else "-"
        roles.row(role, storage.path, quota, f"{storage.purge_days} d" if storage.purge_days else "-")
    title = f"{cluster.title}, {cluster.operator}" if cluster.operator else cluster.title
    blocks = [places, *([queues] if cluster.queue else []), roles]
    return [term.paint("heading", title), *(line for b in blocks for line in ("", *b.lines(term)))]


def _rows(cluster_facts: Facts) -> list[dict[str, Any]]:
    return [
        {"fact": f.name, "value": str(f.value), "from": f.origin.label, "checked": f.checked}
        for f in cluster_facts.rows()
    ]


def _facts(cluster_facts: Facts) -> Table:
    table = Table(
        Column("FACT", style="name"), Column("VALUE"), Column("FROM", drop=2), Column("CHECKED", drop=1)
    )
    for row in _rows(cluster_facts):
        table.row(row["fact"], row["value"], row["from"], row["checked"] or "-")
    return table
