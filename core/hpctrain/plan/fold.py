"""Layers folded in their fixed order into what really goes around one step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hpctrain.errors import Problem
from hpctrain.model.frozen import frozen
from hpctrain.model.layer import File, Layer
from hpctrain.model.plan import Surround
from hpctrain.model.words import Word
from hpctrain.plan.variables import Level, Said, decide


@frozen
class At:
    """A layer and its level."""

    level: Level
    layer: Layer


def fold(layers: Iterable[At]) -> tuple[Surround, tuple[Problem, ...]]:
    """Everything around a step, and the conflicts between those who spoke."""
    ordered = sorted(layers, key=lambda a: a.level)
    decided = decide(Said(a.level, var) for a in ordered for var in a.layer.env)
    files, clashes = _files(ordered)
    around = Surround(
        env=decided.env,
        lost=decided.lost,
        modules=tuple(m for a in ordered for m in a.layer.modules),
        binds=_unique(b for a in ordered for b in a.layer.binds),
        job=tuple(line for a in ordered for line in a.layer.job),
        node=tuple(line for a in ordered for line in a.layer.node),
        task=tuple(line for a in ordered for line in a.layer.task),
        wrap=tuple(word for a in ordered for word in a.layer.wrap),
        files=files,
        ask=_asks(a.layer.ask for a in ordered),
        starter=_asks(a.layer.starter for a in ordered),
    )
    return around, decided.problems + clashes


def _files(ordered: list[At]) -> tuple[tuple[File, ...], tuple[Problem, ...]]:
    found: dict[str, File] = {}
    clashes = []
    for file in (f for a in ordered for f in a.layer.files):
        other = found.setdefault(file.path, file)
        if other.body != file.body:
            notes = (other.source, file.source)
            clashes.append(
                Problem(code="conflict", message=f"two plugins write {file.path} differently", notes=notes)
            )
    return tuple(found.values()), tuple(clashes)


def _unique(items: Iterable[object]) -> tuple:  # type: ignore[type-arg]
    return tuple(dict.fromkeys(items))


def _asks(several: Iterable[Mapping[str, tuple[Word, ...]]]) -> dict[str, tuple[Word, ...]]:
    found: dict[str, tuple[Word, ...]] = {}
    for asks in several:
        for scheduler, words in asks.items():
            found[scheduler] = _unique((*found.get(scheduler, ()), *words))
    return found
