"""A cluster from its `cluster.toml`, the site's file and the user's settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from hpctrain.errors import ConfigError, Problem
from hpctrain.model.cluster import Cluster
from hpctrain.model.frozen import frozen
from hpctrain.model.run import Origin
from hpctrain.runfile.fact_rules import FACT_CHECKS, absent, source_faults
from hpctrain.runfile.faults import Fault
from hpctrain.runfile.keys import Keys, dotted
from hpctrain.runfile.layers import Merged, Tier, in_order, merge
from hpctrain.runfile.policy import loosened
from hpctrain.runfile.rows import ROWS, by_name, by_number
from hpctrain.runfile.settings import Settings
from hpctrain.runfile.strict import Strict
from hpctrain.runfile.text import read_toml

SITE_FOLDER = Path("/etc/hpctrain")


@frozen(kw_only=True)
class Fact:
    """One row of `clusters NAME --facts`: a leaf, who said it, and when that was looked up."""

    name: str
    value: Any
    origin: Origin
    checked: str = ""


@frozen(kw_only=True)
class Facts:
    """A cluster with the layers it came from."""

    cluster: Cluster
    merged: Merged
    files: tuple[str, ...]
    """The files that were read, the lowest layer first."""
    run_tiers: tuple[Tier, ...] = ()
    """`[defaults]` of each of them: run-file keys, one layer below the user's."""

    def rows(self) -> Iterator[Fact]:
        """Every fact with its layer, in the order of the files."""
        checked = {source.id: source.checked for source in self.cluster.source}
        for path, tier in self.merged.owners.items():
            if path[0] in ("source", "defaults"):
                continue
            for name, there, value, source in _leaves(path, self.merged.data):
                if name[-1] == "source":
                    continue
                day = checked.get(source, "")
                yield Fact(name=dotted(name), value=value, origin=tier.origin(there), checked=day)


def _leaves(path: Keys, data: Mapping[str, Any]) -> Iterator[tuple[Keys, Keys, Any, str]]:
    """Name, place, value and source of a leaf; the leaves of its rows when it holds rows."""
    value: Any = data
    source = ""
    for key in path:
        said = value.get("source") if value is not data else None
        source = said if isinstance(said, str) else source
        value = value[key]
    if path[:-1] not in ROWS or not isinstance(value, list):
        yield path, path, value, source
        return
    for number, row in enumerate(value):
        name = (*path, number) if len(value) > 1 else path
        for key, inner in row.items():
            yield (*name, key), (*path, number, key), inner, row.get("source", "")


def load_cluster(source: Path, *, site: Path | None = None, settings: Settings | None = None) -> Cluster:
    """The cluster of a plugin's folder or of a TOML file; ConfigError says all that is wrong."""
    return load_facts(source, site=site, settings=settings).cluster


def load_facts(
    source: Path,
    *,
    site: Path | None = None,
    settings: Settings | None = None,
    user: Sequence[Tier] = (),
) -> Facts:
    """The cluster with its layers; `user` are layers of a run whose `[policy]` may tighten it."""
    path = source / "cluster.toml" if source.is_dir() else source
    tiers = [_file_tier("cluster.toml", path)]
    if site is not None:
        tiers.append(_file_tier("site", site))
    name = tiers[0].data.get("name")
    below = merge(tiers)
    own = (settings or Settings()).fact_tier(name) if isinstance(name, str) else None
    problems: list[Problem] = []
    above = []
    if own is not None:
        own, problems = _known_roles(own, below)
        above.append(_with_rows(own))
    above += [_policy(tier) for tier in user if "policy" in tier.data]
    merged = merge([*tiers, *above], main=tiers[0])
    files = tuple(dict.fromkeys(t.document.file for t in [*tiers, *above] if t.document))
    problems += [*loosened(below, above), *_other_name(tiers)]
    cluster, found = _structure(merged)
    problems += found
    if cluster is None or problems:
        raise ConfigError(*in_order(problems, files))
    runs = tuple(_defaults(tier) for tier in [*tiers, *above] if "defaults" in tier.data)
    return Facts(cluster=cluster, merged=merged, files=files, run_tiers=runs)


def site_file(cluster: str, environ: Mapping[str, str]) -> Path | None:
    """The site's file for this cluster: `$HPCTRAIN_SITE` (a file, or a folder of them) or /etc."""
    named = environ.get("HPCTRAIN_SITE")
    if named and not Path(named).is_dir():
        return Path(named)
    path = Path(named or SITE_FOLDER) / f"{cluster}.toml"
    return path if path.exists() else None


def _file_tier(name: str, path: Path) -> Tier:
    document = read_toml(path)
    return _with_rows(Tier(name=name, data=document.data, document=document))


def _policy(tier: Tier) -> Tier:
    return attrs.evolve(tier, data={"policy": tier.data["policy"]})


def _with_rows(tier: Tier) -> Tier:
    named = by_name(tier.data)
    moved = {path: tier.at(there) for path, there in named.moved.items()}
    return attrs.evolve(tier, data=named.data, moved={**tier.moved, **moved})


def _defaults(tier: Tier) -> Tier:
    return attrs.evolve(tier, data=tier.data["defaults"], prefix=tier.at(("defaults",)), moved={})


def _structure(merged: Merged) -> tuple[Cluster | None, list[Problem]]:
    numbered = by_number(merged.data)
    cluster, faults = Strict(FACT_CHECKS)(numbered.data, Cluster)
    found = [*faults, *source_faults(numbered.data)]
    return cluster, list(merged.problems([_renamed(fault, numbered.moved) for fault in found]))


def _renamed(fault: Fault, moved: Mapping[Keys, Keys]) -> Fault:
    """Name a row as layers do: `queue.batch[0].max_time` instead of `queue[3].max_time`."""
    for length in (2, 3):
        front = moved.get(fault.path[:length])
        if front is not None:
            return attrs.evolve(fault, path=(*front, *fault.path[length:]))
    return fault


def _known_roles(own: Tier, below: Merged) -> tuple[Tier, list[Problem]]:
    """The user's facts without the roles that this cluster lacks, and a problem for each of them."""
    known = below.data.get("storage", {})
    lost = [path for path in own.moved if path[0] == "storage" and path[1] not in known]
    storage = {k: v for k, v in own.data.get("storage", {}).items() if ("storage", k, "path") not in lost}
    problems = [
        absent("storage role", str(path[1]), known, path[:2], at_key=True).problem(own.span(path, key=True))
        for path in lost
    ]
    return attrs.evolve(own, data={**own.data, "storage": storage}) if lost else own, problems


def _other_name(tiers: Sequence[Tier]) -> Iterator[Problem]:
    """A site file that names another cluster would change the wrong one."""
    names = [(tier.data["name"], tier) for tier in tiers if "name" in tier.data]
    for name, tier in names[1:]:
        if name != names[0][0]:
            message = f"these are facts of {name}; the cluster is {names[0][0]}"
            yield Problem(code="wrong-value", message=message, where="name", span=tier.span(("name",)))
