"""`hpctrain clusters --stale`: the sources that are too old, with what rests on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpctrain.cli.out import Out
from hpctrain.doctor.ages import DAYS, age
from hpctrain.runfile.facts import Facts
from hpctrain.ui.table import Column, Table


def show(out: Out, facts_by_cluster: Mapping[str, Facts]) -> int:
    """A line for each source that nobody has looked up for long; the facts themselves in JSON."""
    rows = [row for name, facts in facts_by_cluster.items() for row in _rows(name, facts)]
    if out.flags.json:
        out.document("stale", days=DAYS, sources=rows)
    elif not rows:
        out.lines([f"every source was looked up within {DAYS} days"])
    else:
        out.lines(_table(rows).lines(out.term))
    return 0


def _rows(name: str, facts: Facts) -> list[dict[str, Any]]:
    resting: dict[str, list[str]] = {}
    for fact in facts.rows():
        resting.setdefault(fact.source, []).append(fact.name)
    return [
        {
            "cluster": name,
            "source": source.id,
            "title": source.title,
            "url": source.url,
            "checked": source.checked,
            "days": days,
            "facts": resting.get(source.id, []),
        }
        for source in facts.cluster.source
        if (days := age(source)) is None or days > DAYS
    ]


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(
        Column("CLUSTER", style="name"),
        Column("SOURCE"),
        Column("CHECKED"),
        Column("DAYS", right=True),
        Column("FACTS", right=True, drop=1),
        Column("WHERE", drop=2),
    )
    for row in rows:
        days = str(row["days"]) if row["days"] is not None else None
        where = row["url"] or row["title"]
        table.row(row["cluster"], row["source"], row["checked"], days, str(len(row["facts"])), where)
    return table
