"""The schema says what strictness says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from hpctrain.model.cluster import Cluster
from hpctrain.runfile.reading.toml import loads
from hpctrain.runfile.schema import run_schema, table_schema
from tests.runfile.conftest import DATA, OPTIONS


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """The part of JSON Schema that ours uses."""
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
    checks: list[Callable[[], object]] = [
        lambda: "type" not in schema or _is(value, schema["type"], kinds),
        lambda: value in schema.get("enum", [value]),
        lambda: re.search(schema.get("pattern", ""), value) if isinstance(value, str) else True,
        lambda: not isinstance(value, dict) or set(schema.get("required", ())) <= set(value),
        lambda: all(fits(item, schema.get("items", {})) for item in value) if type(value) is list else True,
        lambda: "anyOf" not in schema or any(fits(value, one) for one in schema["anyOf"]),
        lambda: "oneOf" not in schema or sum(fits(value, one) for one in schema["oneOf"]) == 1,
    ]
    if not all(check() for check in checks):
        return False
    if not isinstance(value, dict):
        return True
    rest = schema.get("additionalProperties", {})
    inner = schema.get("properties", {})
    return all(
        fits(item, inner[key]) if key in inner else rest is not False and fits(item, rest)
        for key, item in value.items()
    )


def _is(value: Any, kind: str, kinds: dict[str, Any]) -> bool:
    if kind == "number":
        return type(value) in (int, float)
    return type(value) is kinds[kind]


def test_a_right_run_file_fits() -> None:
    schema = run_schema(OPTIONS)
    run = loads((DATA / "run.toml").read_text())
    assert fits(run, schema)
    for path, wrong in (
        (("resources", "time"), "25:00:99"),
        (("resources", "nods"), 2),
        (("train", "trl", "method"), "lara"),
        (("environment", "packages"), "trl"),
        (("assets", "model", "git"), "also"),
        (("on", "frontier", "checkpoint", "kepe"), 1),
    ):
        bad = json.loads(json.dumps(run))
        table = bad
        for key in path[:-1]:
            table = table.setdefault(key, {})
        table[path[-1]] = wrong
        assert not fits(bad, schema), path


def test_an_overlay_may_give_parts() -> None:
    schema = run_schema(OPTIONS)
    assert fits({"name": "x", "cluster": "y", "on": {"z": {"resources": {"gpus": 2}}}}, schema)
    assert not fits({"cluster": "y"}, schema)


def test_descriptions_come_from_the_docstrings() -> None:
    schema = run_schema(OPTIONS)
    channel = schema["properties"]["environment"]["properties"]["conda"]["properties"]["channel"]
    assert channel == {"type": "string", "default": "defaults", "description": "Where packages come from."}
    assert "hidden" not in json.dumps(schema)
    assert "sha256" not in schema["properties"]["code"]["properties"]


def test_every_type_of_a_cluster_has_a_schema() -> None:
    cluster = loads((DATA / "cluster.toml").read_text())
    assert fits(cluster, table_schema(Cluster))
