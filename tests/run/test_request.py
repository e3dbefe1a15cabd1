"""What a run was asked, read from what its directory keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpctrain.errors import IntegrityError
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.request import Request, differences

PLAN: dict[str, Any] = {
    "digest": "ab" * 32,
    "run": {
        "name": "small",
        "resources": {"nodes": 2, "time": "5m", "ask": {}, "account": ""},
        "train": {"use": "trl", "options": {"learning_rate": 2e-4, "model": {"loc": ["assets", "hub-1"]}}},
        "env": {"HF_TOKEN": {"secret": "huggingface"}},
        "secrets": ["huggingface"],
        "texts": {"requirements.txt": "torch"},
    },
    "pins": [{"name": "torch", "kind": "pypi", "value": "2.9.0 sha256:1"}],
    "steps": [
        {"step": {"name": "train"}, "around": {"env": [
            {"name": "A", "value": {"join": [{"var": "HOME"}, "/a"]}, "how": "set",
             "source": "core", "why": "so"},
            {"name": "B", "value": "1", "how": "unset", "source": "run.toml", "why": ""},
        ]}},
    ],
}  # fmt: skip


def kept(folder: Path, plan: dict[str, Any]) -> RunDirectory:
    run = RunDirectory(folder)
    run.plan.write_text(json.dumps(plan))
    run.record.append("created", digest="ab", cluster="x", plugins=["trainers:trl (hpctrain-plugins 0.1.0)"])
    return run


def test_settings_are_called_as_the_run_file_calls_them(tmp_path: Path) -> None:
    request = Request.of(kept(tmp_path, PLAN))
    assert request.settings == {
        "resources.nodes": "2",
        "resources.time": "5m",
        "train.use": "trl",
        "train.trl.learning_rate": "0.0002",
        "train.trl.model": "$assets/hub-1",
        "env.HF_TOKEN": "(secret huggingface)",
        "secrets": '["huggingface"]',
    }
    assert request.versions == {
        "plugin trainers:trl": "hpctrain-plugins 0.1.0",
        "torch (pypi)": "2.9.0 sha256:1",
    }
    assert request.variables == (("A", "$HOME/a", "core", "so"), ("B", "(not set)", "run.toml", ""))
    assert request.created


def test_a_plan_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    run = kept(tmp_path, {key: value for key, value in PLAN.items() if key != "pins"})
    with pytest.raises(IntegrityError, match=r"plan\.json cannot be read"):
        Request.of(run)


def test_keys_that_one_run_lacks_differ() -> None:
    different, same = differences([{"a": "1", "b": "2"}, {"b": "2", "c": "3"}])
    assert different == [("a", ["1", "-"]), ("c", ["-", "3"])]
    assert same == ["b"]
