"""`plan --explain`: a layer's reason and source stand under that layer."""

from __future__ import annotations

import io
from typing import Any

from hpctrain.cli.show.explain import explain_lines
from hpctrain.ui.term import Term


def layer(source: str, value: str, fact: str) -> dict[str, Any]:
    row = {"title": fact, "url": "", "checked": "2026-11-20", "sure": "official"} if fact else None
    return {
        "value": value,
        "how": "set",
        "at": "task",
        "source": source,
        "why": f"{source}'s reason",
        "fact": row,
    }


def test_the_loser_keeps_its_own_reason_and_source() -> None:
    entry = {
        "kind": "variable",
        "name": "OFFLINE",
        "step": "train",
        "nodes": 1,
        "in_force": [layer("trainers:trl", "1", "")],
        "lost": [layer("frontier", "0", "Frontier's page"), layer("core", "2", "")],
        "change": "-",
    }
    lines = [line.split(maxsplit=1) for line in explain_lines([entry], Term(io.StringIO()))[1:]]
    assert lines == [
        ["in", "force  SET  trainers:trl"],
        ["why", "trainers:trl's reason"],
        ["lost", "SET  frontier  '0'"],
        ["why", "frontier's reason"],
        ["fact", "Frontier's page, 2026-11-20"],
        ["lost", "SET  core  '2'"],
        ["why", "core's reason"],
        ["change", "-"],
    ]
