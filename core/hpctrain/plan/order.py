"""Whether the steps that plugins answered can be done in their order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from hpctrain.errors import PluginError, Problem
from hpctrain.model.step import Step


def need_order(steps: Sequence[Step], plugins: Collection[str], assets: Collection[str] = ()) -> None:
    """PluginError where a step waits for one that does not come before it, or two have one name.

    `plugins` are those of the plan, for the name of the author. Where one of the run file's `assets` has the
    name of another step, that is said elsewhere: its writer can change it.
    """
    names = [step.name for step in steps]
    if any(names.count(asset) > 1 for asset in assets):
        return
    waits = {step.name: [edge.step for edge in step.after] for step in steps}
    problems: list[Problem] = []
    earlier: set[str] = set()
    for step in steps:
        author = _author(step.source, plugins)
        if step.name in earlier:
            message = f"{author}: two steps are called {step.name}: each has a folder of its name"
            problems.append(_problem(message, step))
        earlier.add(step.name)
        problems += (
            _problem(f"{author}: step {step.name} waits for {_why(step.name, target, waits)}", step)
            for target in waits[step.name]
            if target not in earlier or target == step.name
        )
    if problems:
        raise PluginError(*problems)


def _problem(message: str, step: Step) -> Problem:
    return Problem(
        code="plugin-steps", message=message, source=step.source, hint="hpctrain help plugin-steps"
    )


def _why(name: str, target: str, waits: Mapping[str, Iterable[str]]) -> str:
    """What is wrong with waiting for `target`."""
    if target == name:
        return "itself"
    if target not in waits:
        return f"{target}, and the run has no such step"
    circle = _circle(name, target, waits)
    return f"itself: {' waits for '.join(circle)}" if circle else f"{target}, which comes after it"


def _circle(name: str, first: str, waits: Mapping[str, Iterable[str]]) -> list[str]:
    """The steps from `name` by way of `first` back to `name`; none where there is no such way."""
    seen: set[str] = set()
    ways = [[name, first]]
    while ways:
        way = ways.pop()
        if way[-1] == name:
            return way
        if way[-1] not in seen:
            seen.add(way[-1])
            ways += ([*way, target] for target in waits.get(way[-1], ()))
    return []


def _author(source: str, plugins: Collection[str]) -> str:
    """`lumi (hpctrain-lumi 0.3.1)`; the stamp alone where no plugin of the plan has it."""
    beginnings = (f"{source} (", f"clusters:{source} (")
    return next((p.partition(":")[2] for p in plugins if p.startswith(beginnings)), source or "a plugin")
