"""Which plugins a run names, before anything is structured: what to load, and what it named for nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hpctrain.errors import Problem
from hpctrain.model.fields import keys_of
from hpctrain.model.run import RunSpec
from hpctrain.runfile.faults import Fault
from hpctrain.runfile.judging.rules import check_optional_name
from hpctrain.runfile.keys import nearest
from hpctrain.runfile.layers.layers import Merged, Tier

TECHNOLOGIES = {"environment": "environments", "train": "trainers"}
"""Table of the run file, with `use` and a table of options for each technology -> the kind of plugin."""


def neutral() -> Iterator[tuple[str, type]]:
    """`environment` and `train`, each with the class of the keys that belong to no technology."""
    fields = keys_of(RunSpec)
    for kind in TECHNOLOGIES:
        yield kind, fields[kind].kind.type


def imply(merged: Merged) -> None:
    """Where nobody says `use`, a single table of a technology says it."""
    for kind, cls in neutral():
        named = _named(merged, kind, cls)
        if len(named) == 1 and "use" not in merged.data[kind]:
            merged.data[kind] = {**merged.data[kind], "use": named[0]}


def technologies(merged: Merged) -> dict[str, str]:
    """The technology that `use` names, by table: `environment` and `train`."""
    used = {}
    for kind in TECHNOLOGIES:
        table = merged.data.get(kind)
        use = table.get("use") if isinstance(table, dict) else None
        if isinstance(use, str) and not any(check_optional_name(use)):
            used[kind] = use
    return used


def makers(merged: Merged) -> list[str]:
    """The data plugins that assets name, each once."""
    tables = merged.data.get("assets")
    names = [t.get("use") for t in tables.values() if isinstance(t, dict)] if isinstance(tables, dict) else []
    return sorted({u for u in names if isinstance(u, str) and u and not any(check_optional_name(u))})


def exports(merged: Merged) -> bool:
    """Whether the run asks for its checkpoint in another format: only then are converters loaded."""
    table = merged.data.get("checkpoint")
    return isinstance(table, dict) and bool(table.get("export"))


def unused(merged: Merged, below: Collection[Tier]) -> Iterator[Problem]:
    """A warning for each table of a technology that is not the one in use, which has none.

    Who chose must be the cluster (`below`) or the text that also has the table. A file that carries
    tables for several clusters is fine as long as one of them is used, or an `[on.X]` names it.
    """
    cluster = {id(tier) for tier in below}
    for kind, cls in neutral():
        use = technologies(merged).get(kind, "")
        owners = {name: merged.owner((kind, name)) for name in _named(merged, kind, cls)}
        user_tables = {
            name: tier for name, tier in owners.items() if tier is not None and id(tier) not in cluster
        }
        if not use or use in user_tables:
            continue
        chooser = merged.owner((kind, "use"))
        by_cluster = id(chooser) in cluster
        reason = f"the cluster's own choice is {use}" if by_cluster else f'{kind}.use is "{use}"'
        for name, tier in user_tables.items():
            if by_cluster or (tier is chooser and name not in _elsewhere(tier, kind)):
                yield Problem(
                    code="unused-table",
                    message=f"[{kind}.{name}] is not used: {reason}",
                    where=f"{kind}.{name}",
                    hint=f'[{kind}]\nuse = "{name}"',
                    span=tier.span((kind, name), key=True),
                    fatal=False,
                )


def unheard(ask: Collection[str], schedulers: Collection[str]) -> Iterator[Fault]:
    """A warning for each scheduler that looks misspelt; a run file may well speak to one that is not here."""
    for name in ask:
        near = [] if name in schedulers else nearest(name, schedulers)
        if near:
            yield Fault(
                code="unknown-name",
                message=f'no scheduler "{name}" reads resources.ask.{name}; "{near[0]}" is one',
                hint=near[0],
                path=("resources", "ask", name),
                at_key=True,
                fatal=False,
            )


def _elsewhere(tier: Tier, kind: str) -> set[object]:
    """The technologies that the file of this layer uses on one cluster or another."""
    overlays = tier.document.data.get("on", {}).values() if tier.document else ()
    tables = (overlay.get(kind) for overlay in overlays)
    return {table["use"] for table in tables if isinstance(table, dict) and "use" in table}


def _named(merged: Merged, kind: str, cls: type) -> list[str]:
    table = merged.data.get(kind)
    legal = keys_of(cls)
    if not isinstance(table, dict):
        return []
    return [key for key, value in table.items() if isinstance(value, dict) and key not in legal]
