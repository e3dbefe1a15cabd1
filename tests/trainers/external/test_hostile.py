"""Whatever stands in a trainer's file, the answer is problems with a place: never an exception."""

from __future__ import annotations

import contextlib
import copy
import random
from typing import Any

import pytest
import yaml

from hpctrain.errors import ConfigError, Problem
from hpctrain_plugins.trainers import automodel, nanotron, neox
from hpctrain_plugins.trainers.external.places import leaves
from tests.trainers.external import runs

ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    "",
    "no",
    "1e-5",
    [],
    [[]],
    {},
    {"a": 1},
    10**30,
    float("nan"),
    "é",
)
FILES = {nanotron: "alps.yaml", neox: "isambard_run.yml", automodel: "leonardo.yaml"}


def _set(data: Any, path: tuple[str | int, ...], value: Any) -> None:
    for part in path[:-1]:
        data = data[part]
    data[path[-1]] = value


@pytest.mark.parametrize("module", FILES, ids=lambda m: m.NAME)
def test_any_value_anywhere(module: Any) -> None:
    chance = random.Random(20261120)
    base = (runs.DATA / FILES[module]).read_text()
    paths = [path for path, _ in leaves(yaml.safe_load(base))]
    paths += [path[:n] for path in paths for n in range(1, len(path))]
    said = 0
    for _ in range(60):
        data = yaml.safe_load(base)
        for path in chance.sample(paths, 2):
            with contextlib.suppress(TypeError, KeyError, IndexError):  # the first took the second's place
                _set(data, path, copy.deepcopy(chance.choice(ODD)))
        text = yaml.safe_dump(data)
        found = [*module.check_config({"a.yml": text}, 8, 2)]
        said += any(p.fatal for p in found)
        assert all(isinstance(p, Problem) and p.span and p.message for p in found)
        _plans(module, text)
    assert said > 20


def _plans(module: Any, text: str) -> None:
    """A whole run of it: an answer or problems."""
    run = runs.spec(module, texts={"a.yml": text})
    with contextlib.suppress(ConfigError):
        assert runs.train(module, run).argv
    assert isinstance(runs.problems(module, run), list)
