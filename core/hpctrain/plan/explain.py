"""Who said what, and why: for a variable, a scheduler word, a step or a key of the run file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hpctrain.errors import ConfigError
from hpctrain.model.cluster import Source
from hpctrain.model.layer import EnvVar
from hpctrain.model.plan import Plan, PlannedStep
from hpctrain.plan.about import about, topics
from hpctrain.plan.encode import encode
from hpctrain.plan.keys import keys
from hpctrain.plan.words import set_by, word_text


def explain(plan: Plan, topic: str) -> list[dict[str, Any]]:
    """Every entry about `topic`; ConfigError where there is none, with names that are spelled alike."""
    entries = [
        *(e for step in plan.steps for e in _variables(plan, step, topic)),
        *(e for step in plan.steps for e in _scheduler_words(step, topic)),
        *_key(plan, topic),
        *(_step(step) for step in plan.steps if step.name == topic),
    ]
    entries = entries or list(about(plan, topic)) or list(_short(plan, topic))
    if not entries:
        raise _unknown(plan, topic)
    return entries


def names(plan: Plan) -> list[str]:
    """All that can be explained in this plan."""
    variables = {v.name for s in plan.steps for v in (*s.around.env, *s.around.lost)}
    words = {word_text(w) for s in plan.steps for ws in s.around.ask.values() for w in ws}
    return sorted(
        variables
        | words
        | set(plan.origins)
        | set(keys(plan.run))
        | {s.name for s in plan.steps}
        | set(topics(plan))
    )


def _variables(plan: Plan, step: PlannedStep, name: str) -> Iterator[dict[str, Any]]:
    variables = [v for v in step.around.env if v.name == name]
    if not variables:
        return
    yield {
        "kind": "variable",
        "name": name,
        "step": step.name,
        "nodes": step.step.launch.nodes,
        "in_force": [_variable(plan, v) for v in variables],
        "lost": [_variable(plan, v) for v in step.around.lost if v.name == name],
        "change": f"[env] {name} in the run file wins over all layers",
    }


def _variable(plan: Plan, var: EnvVar) -> dict[str, Any]:
    return {
        "value": word_text(var.value),
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


def _scheduler_words(step: PlannedStep, topic: str) -> Iterator[dict[str, Any]]:
    for scheduler, words in step.around.ask.items():
        for word in words:
            if word_text(word).split("=", 1)[0] == topic.split("=", 1)[0] and topic.startswith("-"):
                yield {"kind": "word", "name": word_text(word), "scheduler": scheduler, "step": step.name}


def _key(plan: Plan, topic: str) -> Iterator[dict[str, Any]]:
    origin, key = plan.origins.get(topic), keys(plan.run).get(topic)
    if origin is None and key is None:
        return
    layer, where = (origin.layer, origin.label) if origin else ("", "")
    value = {"value": key.value, "default": key.default} if key else {}
    yield {"kind": "key", "name": topic, "layer": layer, "where": where, **value}


def _short(plan: Plan, name: str) -> Iterator[dict[str, Any]]:
    """Every key that ends with this name: `nodes` is that of [resources]."""
    for key in sorted({*plan.origins, *keys(plan.run)}):
        if key.endswith(f".{name}"):
            yield from _key(plan, key)


def _step(step: PlannedStep) -> dict[str, Any]:
    artifact = step.step.makes
    return {
        "kind": "step",
        "name": step.name,
        "place": step.step.place,
        "here": step.here,
        "needs": encode(step.step.needs),
        "after": [a.step for a in step.step.after],
        "makes": artifact.filename if artifact else None,
        "inputs": encode(artifact.inputs) if artifact else None,
        "source": step.step.source,
    }


def _unknown(plan: Plan, topic: str) -> ConfigError:
    import difflib

    every_name = names(plan)
    table, _, name = topic.rpartition(".")
    message = f'nothing in this plan is called "{topic}"'
    if topic.isupper():
        message = f"no step of this plan has a variable {topic}, and no fact of {plan.cluster.name} names it"
    elif table and any(key.startswith(f"{table}.") for key in every_name):
        message = f'[{table}] has no key "{name}"'
    # of the table's own keys, where there are some: its name would make all of them similar
    keys = [key for key in every_name if table and key.startswith(f"{table}.")]
    similar = difflib.get_close_matches(name, [key.removeprefix(f"{table}.") for key in keys], 3, 0.7)
    near = [f"{table}.{key}" for key in similar]
    if not keys:
        near = difflib.get_close_matches(topic, every_name, 3, 0.7)
    return ConfigError.of(
        "unknown-name",
        message,
        hint="hpctrain plan --json lists every name",
        notes=(f"similar names: {', '.join(near)}",) if near else (),
    )
