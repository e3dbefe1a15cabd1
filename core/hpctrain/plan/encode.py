"""Plans as JSON: words keep their kind, and what only explains is left out of the digest."""

from __future__ import annotations

import enum
import json
from hashlib import sha256
from typing import Any

import attrs

from hpctrain.model.duration import Duration
from hpctrain.model.plan import Plan
from hpctrain.model.run import ONCE
from hpctrain.model.step import Artifact
from hpctrain.model.words import Cmd, Join, Loc, Raw, Secret, Var

EXPLAINS = frozenset(
    {
        "source",
        "why",
        "fact",
        "first",
        "lost",
        "size_gb",
        "numbers",
        "account",
        "mail",
        "notify",
        "checked",
        "stack",
        "start",
        "only",
    }
)
"""Fields that say who, why, for whom or how carefully; two people with the same run have the same digest.
`start` of `[checkpoint]` is in the lines and files of the training step, which count."""


def encode(value: Any, skip: frozenset[str] = frozenset()) -> Any:
    """Any value of the model as what JSON can hold."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, (tuple, list)):
        return [encode(item, skip) for item in value]
    if isinstance(value, frozenset):
        return sorted(encode(item, skip) for item in value)
    if isinstance(value, enum.Enum):
        return value.value
    if attrs.has(type(value)):
        return _special(value, skip)
    return {str(k): encode(v, skip) for k, v in value.items()}


def _special(value: Any, skip: frozenset[str]) -> Any:
    if isinstance(value, Var):
        return {"var": value.name}
    if isinstance(value, Loc):
        return {"loc": [value.role, value.path]}
    if isinstance(value, Secret):
        return {"secret": value.name}
    if isinstance(value, Raw):
        return {"raw": value.text}
    if isinstance(value, Join):
        return {"join": [encode(part, skip) for part in value.parts]}
    if isinstance(value, Duration):
        return value.short
    if isinstance(value, Cmd) and value.cwd is None and value.stdout is None:
        return [encode(word, skip) for word in value.argv]
    fields = (field for field in attrs.fields(type(value)) if field.name not in skip)
    values = ((field, _counted(value, field)) for field in fields)
    table = {
        field.name: encode(v, skip)
        for field, v in values
        if v is not None or "identity" not in field.metadata
    }
    return table | {"key": value.key, "loc": encode(value.loc)} if isinstance(value, Artifact) else table


def _counted(value: Any, field: attrs.Attribute[Any]) -> Any:
    counted = getattr(value, field.name)
    return field.metadata.get(ONCE) if counted is None else counted


def digest(plan: Plan) -> str:
    """The identity of a plan: what would run, with what, where; not who, why or by which release."""
    identity = {
        "run": encode(plan.run, EXPLAINS),
        "cluster": plan.cluster.name,
        "pins": encode(plan.pins),
        "steps": encode(plan.steps, EXPLAINS),
    }
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode()).hexdigest()
