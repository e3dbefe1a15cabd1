"""Who said what, and why: for a variable, a scheduler word, a step or a key of the run file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hpctrain.errors import ConfigError
from hpctrain.model.cluster import Source
from hpctrain.model.layer import EnvVar
from hpctrain.model.plan import Plan, PlannedStep
from hpctrain.plan.about import about, known
from hpctrain.plan.encode import encode
from hpctrain.plan.keys import keys
from hpctrain.plan.words import said, set_by


def explain(plan: Plan, what: str) -> list[dict[str, Any]]:
    """Every entry about `what`; ConfigError with the nearest names when nobody knows it."""
    found = [
        *(e for step in plan.steps for e in _variables(plan, step, what)),
        *(e for step in plan.steps for e in _asks(step, what)),
        *_key(plan, what),
        *(_step(step) for step in plan.steps if step.name == what),
    ]
    found = found or list(about(plan, what))
    if not found:
        raise _unknown(plan, what)
    return found


def names(plan: Plan) -> list[str]:
    """All that can be explained in this plan."""
    variables = {v.name for s in plan.steps for v in (*s.around.env, *s.around.lost)}
    words = {said(w) for s in plan.steps for ws in s.around.ask.values() for w in ws}
    return sorted(
        variables
        | words
        | set(plan.origins)
        | set(keys(plan.run))
        | {s.name for s in plan.steps}
        | set(known(plan))
    )


def _variables(plan: Plan, step: PlannedStep, name: str) -> Iterator[dict[str, Any]]:
    mine = [v for v in step.around.env if v.name == name]
    if not mine:
        return
    yield {
        "kind": "variable",
        "name": name,
        "step": step.name,
        "nodes": step.step.launch.nodes,
        "in_force": [_variable(plan, v) for v in mine],
        "lost": [_variable(plan, v) for v in step.around.lost if v.name == name],
        "change": f"[env] {name} in the run file wins over all layers",
    }


def _variable(plan: Plan, var: EnvVar) -> dict[str, Any]:
    return {
        "value": said(var.value),
        "how": var.how.value,
        "at": var.at.value,
        "source": set_by(plan, var),
        "why": var.why,
        "fact": _fact(plan.cluster.source_of(var.fact)),
    }


def _fact(source: Source | None) -> dict[str, str] | None:
    if source is None:
        return None
    return {"title": source.title, "url": source.url, "checked": source.checked, "sure": source.sure}


def _asks(step: PlannedStep, what: str) -> Iterator[dict[str, Any]]:
    for scheduler, words in step.around.ask.items():
        for word in words:
            if said(word).split("=", 1)[0] == what.split("=", 1)[0] and what.startswith("-"):
                yield {"kind": "word", "name": said(word), "scheduler": scheduler, "step": step.name}


def _key(plan: Plan, what: str) -> Iterator[dict[str, Any]]:
    origin, key = plan.origins.get(what), keys(plan.run).get(what)
    if origin is None and key is None:
        return
    layer, where = (origin.layer, origin.said) if origin else ("", "")
    value = {"value": key.value, "default": key.default} if key else {}
    yield {"kind": "key", "name": what, "layer": layer, "where": where, **value}


def _step(step: PlannedStep) -> dict[str, Any]:
    makes = step.step.makes
    return {
        "kind": "step",
        "name": step.name,
        "place": step.step.place,
        "here": step.here,
        "needs": encode(step.step.needs),
        "after": [a.step for a in step.step.after],
        "makes": makes.filename if makes else None,
        "inputs": encode(makes.inputs) if makes else None,
        "source": step.step.source,
    }


def _unknown(plan: Plan, what: str) -> ConfigError:
    import difflib

    near = difflib.get_close_matches(what, names(plan), 3, 0.5)
    return ConfigError.of(
        "unknown-name",
        f'nothing in this plan is called "{what}"',
        hint=f"hpctrain plan --explain {near[0]}" if near else "hpctrain plan --json lists every name",
        notes=tuple(f"there is {name}" for name in near[1:]),
    )
