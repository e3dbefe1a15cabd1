"""A configuration as JSON with words in it, and back through the renderer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hpctrain.errors import PluginError
from hpctrain.model.plan import Binding
from hpctrain.model.words import Join, Loc, Raw, Secret, Var
from hpctrain.render import files
from hpctrain_plugins.trainers.config_file import json_file

BINDING = Binding(roots={"assets": "/fs/as sets"}, user="ada")


def _rendered(values: dict[str, Any]) -> Any:
    return json.loads(files.text(json_file("x.json", values), BINDING))


def test_plain_values_come_back() -> None:
    values = {"a": 1, "b": 2.5, "c": None, "d": True, "e": ["x", {"f": 'q"\n\\u0000{}$(rm)'}], "å": "ø"}
    assert _rendered(values) == values


def test_words_become_strings_wherever_they_stand() -> None:
    place = Loc("assets", "model-1")
    values = {"a": place, "b": [Join(place, "/x:train"), {"c": place}], "d": "0"}
    root = "/fs/as sets/model-1"
    assert _rendered(values) == {"a": root, "b": [f"{root}/x:train", {"c": root}], "d": "0"}


def test_text_that_looks_like_a_hole_stays() -> None:
    values = {"a": "word0", "word1": "word_0", "b": Loc("assets")}
    assert _rendered(values) == {**values, "b": "/fs/as sets"}


@pytest.mark.parametrize("word", [Var("X"), Secret("t"), Raw("x"), Join("a", Var("X")), object(), {1}])
def test_what_no_shell_would_expand_is_refused(word: object) -> None:
    with pytest.raises(PluginError) as raised:
        json_file("x.json", {"a": {"b": word}})
    assert "cannot be used in x.json: no shell expands it there" in str(raised.value)


def test_nan_is_no_json() -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_file("x.json", {"a": float("nan")})
