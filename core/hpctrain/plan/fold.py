"""Layers folded in their fixed order into what really goes around one step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

from hpctrain.errors import Problem
from hpctrain.model.layer import File, Layer
from hpctrain.model.plan import Surround
from hpctrain.model.words import Word
from hpctrain.plan.variables import Level, LeveledVariable, decide


@frozen
class LeveledLayer:
    """A layer with the level that it is folded at."""

    level: Level
    layer: Layer


def fold(leveled: Iterable[LeveledLayer]) -> tuple[Surround, tuple[Problem, ...]]:
    """Everything around a step, and the conflicts between the plugins whose layers disagree."""
    ordered = sorted(leveled, key=lambda item: item.level)
    layers = [item.layer for item in ordered]
    decided = decide(LeveledVariable(item.level, var) for item in ordered for var in item.layer.env)
    files, conflicts = _files(layers)
    around = Surround(
        env=decided.env,
        lost=decided.lost,
        modules=tuple(m for layer in layers for m in layer.modules),
        binds=_unique(b for layer in layers for b in layer.binds),
        job=tuple(line for layer in layers for line in layer.job),
        node=tuple(line for layer in layers for line in layer.node),
        task=tuple(line for layer in layers for line in layer.task),
        wrap=tuple(word for layer in layers for word in layer.wrap),
        files=files,
        ask=_scheduler_words(layer.ask for layer in layers),
        starter=_scheduler_words(layer.starter for layer in layers),
    )
    return around, decided.problems + conflicts


def _files(layers: list[Layer]) -> tuple[tuple[File, ...], tuple[Problem, ...]]:
    """Every file that the layers bring, and a conflict for each path that two of them fill differently."""
    files: dict[str, File] = {}
    conflicts = []
    for file in (file for layer in layers for file in layer.files):
        first = files.setdefault(file.path, file)
        if first.body != file.body:
            notes = (first.source, file.source)
            conflicts.append(
                Problem(code="conflict", message=f"two plugins write {file.path} differently", notes=notes)
            )
    return tuple(files.values()), tuple(conflicts)


def _unique(items: Iterable[object]) -> tuple:  # type: ignore[type-arg]
    return tuple(dict.fromkeys(items))


def _scheduler_words(asks_of_layers: Iterable[Mapping[str, tuple[Word, ...]]]) -> dict[str, tuple[Word, ...]]:
    """The words for each scheduler, of all layers together."""
    words_of: dict[str, tuple[Word, ...]] = {}
    for asks in asks_of_layers:
        for scheduler, words in asks.items():
            words_of[scheduler] = _unique((*words_of.get(scheduler, ()), *words))
    return words_of
