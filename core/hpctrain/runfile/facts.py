"""A cluster from its `cluster.toml`, the site's file and the user's settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from hpctrain.errors import ConfigError, Problem
from hpctrain.model.cluster import Cluster
from hpctrain.model.run import Origin
from hpctrain.runfile.faults import Fault
from hpctrain.runfile.judging.fact_rules import FACT_CHECKS, absent, source_faults
from hpctrain.runfile.judging.strict import Strict
from hpctrain.runfile.keys import Keys, dotted
from hpctrain.runfile.layers.layers import Merged, Tier, in_order, merge
from hpctrain.runfile.layers.policy import loosened
from hpctrain.runfile.layers.rows import ROWS, by_name, by_number
from hpctrain.runfile.layers.settings import Settings
from hpctrain.runfile.reading.text import read_toml

SITE_FOLDER = Path("/etc/hpctrain")


@frozen(kw_only=True)
class Fact:
    """One row of `clusters NAME --facts`: a leaf, who said it, and when that was looked up."""

    name: str
    value: Any
    origin: Origin
    checked: str = ""
    source: str = ""
    """The id of the `[[source]]` that says so."""


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
            for name, place, value, source in _leaves(path, self.merged.data):
                if name[-1] == "source":
                    continue
                day = checked.get(source, "")
                yield Fact(
                    name=dotted(name), value=value, origin=tier.origin(place), checked=day, source=source
                )


def _leaves(path: Keys, data: Mapping[str, Any]) -> Iterator[tuple[Keys, Keys, Any, str]]:
    """Name, place, value and source of a leaf; the leaves of its rows when it holds rows."""
    value: Any = data
    source = ""
    for key in path:
        row_source = value.get("source") if value is not data else None
        source = row_source if isinstance(row_source, str) else source
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
    installed: Path | None = None,
    settings: Settings | None = None,
    user: Sequence[Tier] = (),
) -> Facts:
    """The cluster with its layers; `user` are layers of a run whose `[policy]` may tighten it.

    `installed` is the administrators' own site file: where `site` is another one, it takes that one's place
    in all but its policy, since a variable that anybody may set lifts no cap.
    """
    path = source / "cluster.toml" if source.is_dir() else source
    tiers = [_file_tier("cluster.toml", path)]
    if site is not None:
        tiers.append(_file_tier("site", site))
    name = tiers[0].data.get("name")
    below = merge(tiers)
    user_tier = (settings or Settings()).fact_tier(name) if isinstance(name, str) else None
    problems: list[Problem] = []
    above = []
    if user_tier is not None:
        user_tier, problems = _known_roles(user_tier, below)
        above.append(_with_rows(user_tier))
    above += [_policy(tier) for tier in user if "policy" in tier.data]
    strict = tiers[:1]
    if installed not in (None, site):
        strict = [*strict, _policy_with_sources(_file_tier("site", installed))]
    merged = merge([*strict, *tiers[1:], *above], main=tiers[0])
    files = tuple(dict.fromkeys(t.document.file for t in [*tiers, *above] if t.document))
    if len(strict) > 1:
        problems += loosened(merge(strict), tiers[1:])
    problems += [*loosened(merge([*strict, *tiers[1:]]), above), *_other_name(tiers)]
    cluster, fact_problems = _structure(merged)
    problems += fact_problems
    if cluster is None or problems:
        raise ConfigError(*in_order(problems, files))
    runs = tuple(_defaults(tier) for tier in [*tiers, *above] if "defaults" in tier.data)
    return Facts(cluster=cluster, merged=merged, files=files, run_tiers=runs)


def site_file(cluster: str, environ: Mapping[str, str]) -> Path | None:
    """The site's file for this cluster: `$HPCTRAIN_SITE` (a file, or a folder of them) or /etc."""
    named = environ.get("HPCTRAIN_SITE")
    if named and not Path(named).is_dir():
        return Path(named)
    if not named:
        return installed_site_file(cluster)
    path = Path(named) / f"{cluster}.toml"
    return path if path.exists() else None


def installed_site_file(cluster: str) -> Path | None:
    """The file that the machine's administrators installed for this cluster."""
    path = SITE_FOLDER / f"{cluster}.toml"
    return path if path.exists() else None


def _file_tier(name: str, path: Path) -> Tier:
    document = read_toml(path)
    return _with_rows(Tier(name=name, data=document.data, document=document))


def _policy(tier: Tier) -> Tier:
    return attrs.evolve(tier, data={"policy": tier.data["policy"]})


def _policy_with_sources(tier: Tier) -> Tier:
    return attrs.evolve(tier, data={k: tier.data[k] for k in ("source", "policy") if k in tier.data})


def _with_rows(tier: Tier) -> Tier:
    named = by_name(tier.data)
    moved = {path: tier.at(place) for path, place in named.moved.items()}
    return attrs.evolve(tier, data=named.data, moved={**tier.moved, **moved})


def _defaults(tier: Tier) -> Tier:
    return attrs.evolve(tier, data=tier.data["defaults"], prefix=tier.at(("defaults",)), moved={})


def _structure(merged: Merged) -> tuple[Cluster | None, list[Problem]]:
    numbered = by_number(merged.data)
    cluster, faults = Strict(FACT_CHECKS)(numbered.data, Cluster)
    all_faults = [*faults, *source_faults(numbered.data)]
    return cluster, list(merged.problems([_renamed(fault, numbered.moved) for fault in all_faults]))


def _renamed(fault: Fault, moved: Mapping[Keys, Keys]) -> Fault:
    """Name a row as layers do: `queue.batch[0].max_time` instead of `queue[3].max_time`."""
    for length in (2, 3):
        front = moved.get(fault.path[:length])
        if front is not None:
            return attrs.evolve(fault, path=(*front, *fault.path[length:]))
    return fault


def _known_roles(user_tier: Tier, below: Merged) -> tuple[Tier, list[Problem]]:
    """The user's facts without the roles that this cluster lacks, and a problem for each of them."""
    roles = below.data.get("storage", {})
    lost = [path for path in user_tier.moved if path[0] == "storage" and path[1] not in roles]
    storage = {
        k: v for k, v in user_tier.data.get("storage", {}).items() if ("storage", k, "path") not in lost
    }
    problems = [
        absent("storage role", str(path[1]), roles, path[:2], at_key=True).problem(
            user_tier.span(path, key=True)
        )
        for path in lost
    ]
    return attrs.evolve(
        user_tier, data={**user_tier.data, "storage": storage}
    ) if lost else user_tier, problems


def _other_name(tiers: Sequence[Tier]) -> Iterator[Problem]:
    """A site file that names another cluster would change the wrong one."""
    names = [(tier.data["name"], tier) for tier in tiers if "name" in tier.data]
    for name, tier in names[1:]:
        if name != names[0][0]:
            message = f"these are facts of {name}; the cluster is {names[0][0]}"
            yield Problem(code="wrong-value", message=message, where="name", span=tier.span(("name",)))
