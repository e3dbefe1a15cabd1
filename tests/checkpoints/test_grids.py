from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hpctrain.errors import IntegrityError
from hpctrain_plugins.checkpoints.formats.grids import Box, assemble
from hpctrain_plugins.checkpoints.tensors import whole
from tests.checkpoints.test_bands import array

FULL = whole("t", "I32", (6, 4, 8), Path("one"), 0)


def boxes(rows: list[int], columns: list[int]) -> list[Box]:
    out = []
    for low, high in pairwise(rows):
        for left, right in pairwise(columns):
            part = FULL.part(0, low, high).part(2, left, right)
            out.append(Box((low, 0, left), part))
    return out


@pytest.mark.parametrize(
    ("rows", "columns"), [([0, 6], [0, 8]), ([0, 2, 3, 6], [0, 8]), ([0, 1, 6], [0, 3, 8])]
)
def test_any_grid_gives_the_tensor_back(rows: list[int], columns: list[int]) -> None:
    want = np.arange(192, dtype=np.int32).reshape(6, 4, 8)
    have = assemble("t", list(reversed(boxes(rows, columns))), (6, 4, 8))
    assert (array(have, want.tobytes()) == want).all()


@pytest.mark.parametrize("lost", range(4))
def test_a_lost_box_is_named(lost: int) -> None:
    found = boxes([0, 1, 6], [0, 3, 8])
    del found[lost]
    with pytest.raises(IntegrityError, match=r"\bt\b"):
        assemble("t", found, (6, 4, 8))


def test_a_box_twice_is_refused() -> None:
    found = boxes([0, 1, 6], [0, 3, 8])
    with pytest.raises(IntegrityError, match="of t overlap"):
        assemble("t", [*found, found[0]], (6, 4, 8))
