"""Layers of keys, one over the other: tables merge, everything else replaces, each leaf remembers.

The order is core < cluster.toml < site file < settings < run file < its `[on.X]` < `--set`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
from attrs import frozen

from hpctrain.errors import Problem, Span
from hpctrain.model.run import Origin
from hpctrain.runfile.faults import Fault
from hpctrain.runfile.judging.rules import alternatives_at
from hpctrain.runfile.keys import Keys
from hpctrain.runfile.reading.text import MOST, Document


@frozen(kw_only=True)
class Tier:
    """One layer: its keys, and where they stand in the file that says them.

    `prefix` is the table of the file in which the keys stand (`[defaults]`, `[on.X]`); `moved`
    names those that stand elsewhere. A `--set` has no document but `option`, its words.
    """

    name: str
    data: Mapping[str, Any]
    document: Document | None = None
    prefix: Keys = ()
    moved: Mapping[Keys, Keys] = attrs.field(factory=dict)
    option: str = ""

    def at(self, path: Keys) -> Keys:
        """The path in this layer's own file."""
        for length in range(len(path), 0, -1):
            start = self.moved.get(path[:length])
            if start is not None:
                return (*start, *path[length:])
        return (*self.prefix, *path)

    def span(self, path: Keys, *, key: bool = False) -> Span | None:
        """Where the value (or its key) was said; line 0 means that it was no file."""
        if self.document is not None:
            return self.document.span(self.at(path), key=key)
        return Span(file=self.option, line=0) if self.option else None

    def origin(self, path: Keys) -> Origin:
        """The origin of one leaf; its line is found when somebody asks."""
        document = self.document
        if document is None:
            return Origin(self.option or self.name)
        return Origin(self.name, document.file, seek=lambda: document.span(self.at(path)).line)


@frozen
class Merged:
    """The keys in force and, for each leaf, the layer that said it."""

    data: dict[str, Any]
    owners: dict[Keys, Tier]
    main: Tier | None = None
    """Whose file lacks a table that nobody said anything in."""

    def owner(self, path: Keys) -> Tier | None:
        """Who said this leaf, the value around it, or else the last to say anything in it."""
        for length in range(len(path), 0, -1):
            front = path[:length]
            if front in self.owners:
                return self.owners[front]
            inside = [tier for leaf, tier in self.owners.items() if leaf[:length] == front]
            if inside:
                return inside[-1]
        return self.main

    def problem(self, fault: Fault) -> Problem:
        """The fault with its place in the file of the layer that said it."""
        owner = self.owner(fault.path)
        return fault.problem(owner.span(fault.path, key=fault.at_key) if owner else None)

    def problems(self, faults: Sequence[Fault], files: Sequence[str] = ()) -> tuple[Problem, ...]:
        """The faults in the order of the files; of very many only the first, and how many more."""
        sorted_problems = in_order((self.problem(fault) for fault in faults[:MOST]), files)
        omitted = len(faults) - MOST
        if omitted <= 0:
            return sorted_problems
        return (*sorted_problems, Problem(code="too-many", message=f"{omitted:,} more like the {MOST} above"))

    def located(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Each problem whose `where` is a key that a layer said, with its place in that layer's file."""
        return tuple(map(self._located, problems))

    def _located(self, problem: Problem) -> Problem:
        text, bracket, number = problem.where.partition("[")
        path: Keys = tuple(text.split("."))
        tier = self.owners.get(path) if problem.span is None and problem.where else None
        inside: Keys = (int(number.rstrip("]")),) if bracket and number.rstrip("]").isdigit() else ()
        return problem if tier is None else attrs.evolve(problem, span=tier.span((*path, *inside)))

    def origins(self) -> dict[Keys, Origin]:
        """The origin of every leaf: its layer, file and line."""
        return {path: tier.origin(path) for path, tier in self.owners.items()}


def merge(tiers: Iterable[Tier], main: Tier | None = None) -> Merged:
    """Fold layers from the lowest to the highest."""
    merged = Merged({}, {}, main)
    for tier in tiers:
        _lay(merged, merged.data, tier.data, tier, ())
    return merged


def _lay(merged: Merged, below: dict[str, Any], data: Mapping[str, Any], tier: Tier, path: Keys) -> None:
    _drop_alternatives(merged, below, data, path)
    for key, value in data.items():
        inner_path = (*path, key)
        if isinstance(value, dict):
            if not isinstance(below.get(key), dict):
                if key in below:
                    _forget(merged, inner_path)
                below[key] = {}
                if not value:
                    merged.owners[inner_path] = tier
            elif value:
                merged.owners.pop(inner_path, None)
            _lay(merged, below[key], value, tier, inner_path)
        else:
            if key in below:
                _forget(merged, inner_path)
            below[key] = value
            merged.owners[inner_path] = tier


def _forget(merged: Merged, path: Keys) -> None:
    for leaf in [leaf for leaf in merged.owners if leaf[: len(path)] == path]:
        del merged.owners[leaf]


def _drop_alternatives(merged: Merged, below: dict[str, Any], data: Mapping[str, Any], path: Keys) -> None:
    group = alternatives_at(path)
    if group.intersection(data):
        for key in group.intersection(below).difference(data):
            del below[key]
            _forget(merged, (*path, key))


def in_order(problems: Iterable[Problem], files: Iterable[str] = ()) -> tuple[Problem, ...]:
    """Problems by file and place; files in the order of `files`, others after them."""
    rank = {file: number for number, file in enumerate(files)}

    def place(problem: Problem) -> tuple[int, str, int, int, str]:
        span = problem.span
        if span is None:
            return (len(rank) + 1, "", 0, 0, problem.where)
        return (rank.get(span.file, len(rank)), span.file, span.line, span.column, problem.where)

    return tuple(sorted(problems, key=place))
