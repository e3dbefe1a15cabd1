"""Circles of imports among the parts of a folder: its modules and its sub-folders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

Name = tuple[str, ...]
"""The dotted name of a module, in parts."""
Graph = Mapping[str, Collection[str]]


def folder_graphs(arrows: Iterable[tuple[Name, Name]]) -> dict[Name, dict[str, set[str]]]:
    """Folder -> part of it -> the parts of it that this one imports, whichever modules inside do so.

    An arrow between two modules counts once, in the innermost folder that holds both.
    """
    graphs: dict[Name, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for importer, imported in arrows:
        depth = next(i for i, (a, b) in enumerate(zip(importer, imported, strict=False)) if a != b)
        graphs[importer[:depth]][importer[depth]].add(imported[depth])
    return graphs


def circles(graph: Graph) -> Iterator[frozenset[str]]:
    """The largest sets of nodes that all reach each other."""
    reach = {node: _reachable(node, graph) for node in graph}
    done: set[str] = set()
    for node in graph:
        circle = frozenset(n for n in reach[node] if node in reach.get(n, ()))
        if circle and node not in done:
            done |= circle
            yield circle


def _reachable(start: str, graph: Graph) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for node in graph.get(waiting.pop(), ()):
            if node not in reached:
                reached.add(node)
                waiting.append(node)
    return reached
