"""Layers as values: the last one wins, leaf by leaf, whatever is merged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hpctrain.runfile.keys import Keys
from hpctrain.runfile.layers.layers import Tier, merge

KEYS = st.sampled_from("abc")
TREES = st.dictionaries(
    KEYS,
    st.recursive(st.integers(0, 9), lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=6),
    max_size=3,
)


def leaves(tree: Any, path: Keys = ()) -> Iterator[Keys]:
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key)


def reach(tree: Any, path: Keys) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def folded(below: Any, above: Any) -> Any:
    """The definition: tables merge, everything else replaces."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    both = {key: folded(below[key], above[key]) for key in below.keys() & above.keys()}
    return {**below, **above, **both}


@settings(max_examples=200, derandomize=True)
@given(st.lists(TREES, max_size=4))
def test_any_layers(trees: list[dict[str, Any]]) -> None:
    tiers = [Tier(name=str(number), data=tree) for number, tree in enumerate(trees)]
    merged = merge(tiers)
    expected: Any = {}
    for tree in trees:
        expected = folded(expected, tree)
    assert merged.data == expected
    assert set(merged.owners) == set(leaves(merged.data))
    for path, tier in merged.owners.items():
        assert reach(tier.data, path) == reach(merged.data, path)


def test_layers_are_not_changed() -> None:
    below: dict[str, Any] = {"a": {"b": 1}}
    merge([Tier(name="1", data=below), Tier(name="2", data={"a": {"b": 2, "c": 3}})])
    assert below == {"a": {"b": 1}}


def test_alternatives_of_one_layer_stay() -> None:
    first = Tier(name="1", data={"resources": {"nodes": 1}})
    second = Tier(name="2", data={"resources": {"gpus": 2, "nodes": 3}})
    assert merge([first, second]).data == {"resources": {"gpus": 2, "nodes": 3}}
    third = Tier(name="3", data={"resources": {"gpus": 4}})
    merged = merge([first, second, third])
    assert merged.data == {"resources": {"gpus": 4}}
    assert merged.owners == {("resources", "gpus"): third}
