"""`convert --ranks` where there are none, and the one number that it changes in a pickle."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from hpctrain.errors import IntegrityError
from hpctrain_plugins.checkpoints.containers.pickle_edit import with_number
from tests.checkpoints.conftest import Call
from tests.checkpoints.models import LLAMA, make


def test_a_model_without_an_optimizer_of_ranks_is_refused(convert: Call, tmp_path: Path) -> None:
    make(tmp_path / "model", LLAMA)
    code, _, err = convert("model", "--ranks", 4, "-o", "out")
    assert (code, "hf has no optimizer of ranks; --ranks is for checkpoints of DeepSpeed's ZeRO" in err) == (
        2,
        True,
    ), err
    (tmp_path / "dcp").mkdir()
    for name in (".metadata", "__0_0.distcp"):
        (tmp_path / "dcp" / name).write_bytes(b"")
    code, _, err = convert("dcp", "--ranks", 4, "-o", "out")
    assert (code, "are cut for the ranks that load them, when they load them" in err) == (2, True), err


@pytest.mark.parametrize("before", [2, 300, 70_000, 1])
@pytest.mark.parametrize("after", [1, 64, 300, 70_000])
def test_one_number_of_a_pickle_changes_and_nothing_else(before: int, after: int) -> None:
    value = {"a": [1, 2], "dp_world_size": before, "mp_world_size": 1, "b": "dp_world_sizes"}
    edited = with_number(pickle.dumps(value, 2), "dp_world_size", after, "file")
    assert pickle.loads(edited) == {**value, "dp_world_size": after}


@pytest.mark.parametrize(
    ("value", "protocol"),
    [({"other": 1}, 2), ({"dp_world_size": "2"}, 2), ([{"dp_world_size": 2}, {"dp_world_size": 3}], 4)],
)
def test_a_pickle_that_does_not_say_the_number_is_refused(value: object, protocol: int) -> None:
    with pytest.raises(IntegrityError, match="does not say dp_world_size"):
        with_number(pickle.dumps(value, protocol), "dp_world_size", 4, "file")
