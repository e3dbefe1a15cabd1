"""Kinds of NeoX training and the data keys that each needs: pretraining, sft, dpo, rm, kto."""

from __future__ import annotations

from typing import Any

import pytest

from hpctrain.model.run import Code
from hpctrain_plugins.trainers import neox
from tests.trainers.external.runs import codes, problems, spec

MODEL = "isambard_model.yml"
CODE = Code(git="https://github.com/EleutherAI/gpt-neox", rev="ea7aefd8")


def _post(kind: str, **more: Any) -> Any:
    """A run of post-training: the model file, and a table of data."""
    rest = {"train_impl": kind, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1}}
    options = {"settings": {**rest, "pack_impl": "unpacked", **more}}
    return spec(neox, MODEL, code=CODE, options=options)


def _sides(*parts: str) -> dict[str, list[str]]:
    return {f"{side}_train_{part}data_paths": ["/d"] for side in ("pos", "neg") for part in parts}


SPLITS = ("train", "valid", "test")
ALL = {f"{split}_data_paths": ["/d"] for split in SPLITS}
LABELS = {f"{split}_label_data_paths": ["/l"] for split in SPLITS}
REWARDS = {f"{split}_reward_data_paths": ["/r"] for split in SPLITS}


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("normal", {**ALL, **LABELS}),
        ("dpo", {"dataset_impl": "pairwise", **_sides("", "label_")}),
        ("rm", {"dataset_impl": "pairwise", **_sides("", "label_")}),
        ("kto", {**ALL, **LABELS, **REWARDS}),
    ],
)
def test_each_kind_of_post_training_with_its_data(kind: str, data: dict[str, Any]) -> None:
    assert problems(neox, _post(kind, **data)) == []


@pytest.mark.parametrize(
    ("kind", "data", "says"),
    [
        ("dpo", {"dataset_impl": "pairwise"}, "dpo needs pos_train_data_paths"),
        ("dpo", {**_sides("", "label_")}, "dpo reads dataset_impl pairwise, not gpt2"),
        ("rm", {"dataset_impl": "pairwise", "pos_train_data_paths": ["/d"]}, "rm needs neg_train_data_paths"),
        ("kto", {**ALL, **LABELS}, "kto needs train_reward_data_paths"),
        ("kto", {**ALL, **REWARDS}, "kto needs train_label_data_paths"),
        ("kto", {**ALL, **LABELS, **REWARDS, "dataset_impl": "pairwise"}, "kto reads dataset_impl gpt2"),
        ("normal", {"train_label_data_paths": ["/l"]}, "train_label_data_paths needs train_data_paths"),
        ("normal", {"train_data_paths": ["/d"]}, "train_data_paths stands without valid_data_paths"),
        ("normal", {**ALL, "data_path": "/d"}, "data_path and train_data_paths exclude each other"),
        ("normal", {**ALL, "train_data_weights": [1, 2]}, "train_data_weights has 2 entries"),
        ("ppo", {}, "train_impl is 'ppo'; one of normal, dpo, rm, kto, reinforce is needed"),
    ],
)
def test_data_keys_that_a_kind_needs(kind: str, data: dict[str, Any], says: str) -> None:
    found = [p for p in problems(neox, _post(kind, **data)) if p.fatal]
    assert any(p.message.startswith(says) for p in found), [p.message for p in found]


@pytest.mark.parametrize(
    ("kind", "data", "says"),
    [
        ("dpo", {"dataset_impl": "pairwise", **_sides("")}, "without pos_train_label_data_paths the prompt"),
        (
            "normal",
            {**ALL, "train_label_data_paths": ["/l"]},
            "valid_data_paths has no valid_label_data_paths",
        ),
        (
            "dpo",
            {"dataset_impl": "pairwise", "pack_impl": "packed", **_sides("", "label_")},
            "packed rows mix",
        ),
        ("normal", {}, "no data is named"),
    ],
)
def test_data_that_trains_something_else_is_a_warning(kind: str, data: dict[str, Any], says: str) -> None:
    found = problems(neox, _post(kind, **data))
    assert not codes(found, fatal=True)
    assert any(says in p.message for p in found)
