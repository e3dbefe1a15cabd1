"""graph.json is read back as it was written, by this release and by later ones; a damaged one says where."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hpctrain.errors import IntegrityError
from hpctrain.model.plan import Binding
from hpctrain.model.step import After, When
from hpctrain.model.words import Cmd, Join, Loc, Raw, Var
from hpctrain.plan.decode import word
from hpctrain.plan.encode import encode
from hpctrain.render.graph import Graph, Node, nodes_text, read
from hpctrain.versions import RECORD

NODES = (
    Node(name="fetch", here=True, makes=Loc("assets", "model-1"), origin="hub", checked=True),
    Node(
        name="train",
        here=False,
        after=(After("fetch"), After("other", When.ANY)),
        submit=Cmd.of("sbatch", Join("--comment=", Var("HPC_TAG")), Raw("$X"), Loc("runs")),
        secrets=("huggingface",),
    ),
)
BINDING = Binding(roots={"runs": "/runs", "data": Join(Var("SCRATCH"), "/data")}, user="ada", account="a1")


def text() -> str:
    policy = SimpleNamespace(poll_seconds=10)
    plan: Any = SimpleNamespace(
        run=SimpleNamespace(name="r", secrets=("huggingface",)),
        cluster=SimpleNamespace(
            name="c", scheduler="slurm", policy=policy, exported=("http_proxy",), storage={}
        ),
        digest="d" * 64,
    )
    return nodes_text(plan, NODES, BINDING)


def graph(tmp_path: Path, document: Any) -> Graph:
    path = tmp_path / "graph.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return read(path)


def test_it_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    again = graph(tmp_path, text())
    assert again.nodes == NODES
    assert again.binding == BINDING
    assert (again.name, again.scheduler, again.poll_seconds) == ("r", "slurm", 10)
    assert (again.secrets, again.submit_env) == (("huggingface",), ("http_proxy",))


def test_its_form_stays() -> None:
    document = json.loads(text())
    assert list(document) == [
        *("v", "name", "cluster", "scheduler", "digest", "poll_seconds", "account", "secrets", "submit_env"),
        *("roots", "user", "python", "nodes"),
    ]
    assert document["nodes"][1] == {
        "name": "train",
        "here": False,
        "waits": False,
        "after": [["fetch", "ok"], ["other", "any"]],
        "makes": None,
        "submit": [
            "sbatch",
            {"join": ["--comment=", {"var": "HPC_TAG"}]},
            {"raw": "$X"},
            {"loc": ["runs", ""]},
        ],
        "secrets": ["huggingface"],
    }


def test_an_older_one_lacks_keys_and_a_newer_one_has_more(tmp_path: Path) -> None:
    document = json.loads(text())
    document["later"] = {"x": 1}
    for row in document["nodes"]:
        row.pop("secrets")
        row["later"] = 1
    assert graph(tmp_path, document).nodes[1].secrets == ()


def broken(path: list[Any], value: Any) -> dict[str, Any]:
    document: Any = json.loads(text())
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return document  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("", "Expecting value"),
        ("[]", "indices"),
        ({}, "'v'"),
        (broken(["v"], RECORD + 1), "newer"),
        (broken(["nodes", 0, "here"], "no"), r"\$\.nodes\[0\]\.here"),
        (broken(["nodes", 0, "name"], None), r"required field missing @ \$\.nodes\[0\]\.name"),
        (broken(["nodes", 1, "after"], [["fetch", "soon"]]), r"\$\.nodes\[1\]\.after\[0\]"),
        (broken(["nodes", 1, "submit"], [{"shell": "x"}]), r"\$\.nodes\[1\]\.submit"),
        (broken(["roots", "runs"], 3), r"\$\.roots"),
        (broken(["poll_seconds"], "10"), r"\$\.poll_seconds"),
        ("[" * 200_000, "nested too deeply"),
    ],
)
def test_a_damaged_one_says_where(tmp_path: Path, document: Any, message: str) -> None:
    with pytest.raises(IntegrityError, match=message):
        graph(tmp_path, document)


@pytest.mark.parametrize(
    "value", ["x", Var("A"), Raw("$A"), Loc("a", "b"), Join("a", Loc("b"), Join(Var("C")))]
)
def test_words_there_and_back(value: Any) -> None:
    assert word(json.loads(json.dumps(encode(value)))) == value
