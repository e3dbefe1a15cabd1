"""Every family in every format that is written: bit-equal there and back, or refused for a named reason.

The first table in docs/conversion.md is what these tests found; test_matrix_real.py has the second one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpctrain.testing.plugin import UPDATE, updates
from hpctrain_plugins.checkpoints.formats.hf.families import FAMILIES
from tests.checkpoints import matrix
from tests.checkpoints.matrix import TARGETS, bits
from tests.checkpoints.models import GPT_NEOX, LLAMA, make_family

_EXPERTS = {"num_experts_per_tok": 2, "num_experts": 4, "num_local_experts": 4, "moe_intermediate_size": 16}
_EXTRAS: dict[str, dict[str, Any]] = {
    "gpt_neox": GPT_NEOX,
    "qwen3": {"head_dim": 16},
    "qwen3_moe": {"head_dim": 16, "norm_topk_prob": True, **_EXPERTS},
    "mixtral": _EXPERTS,
    "olmoe": _EXPERTS,
    "arcee": {"hidden_act": "relu2"},
    **{name: {"head_dim": 16, "hidden_act": "gelu"} for name in ("gemma", "gemma2", "gemma3_text")},
}


def _outcome(family: str, target: str, place: Path) -> str:
    source = make_family(place / "hf", {**LLAMA, **_EXTRAS.get(family, {}), "model_type": family})
    return matrix.outcome(family, source, target, place, bits(source))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("target", TARGETS)
def test_cell(target: str, family: str, tmp_path: Path) -> None:
    rows, notes = matrix.read("matrix")
    assert (
        matrix.cell(_outcome(family, target, tmp_path), notes, "matrix")
        == rows[family][TARGETS.index(target)]
    )


def test_the_page_has_every_cell(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    if updates(pytestconfig):
        notes: list[str] = []
        rows = []
        for family in FAMILIES:
            cells = []
            for target in TARGETS:
                place = tmp_path / family / target
                place.mkdir(parents=True)
                cells.append(matrix.cell(_outcome(family, target, place), notes, "matrix"))
            rows.append([f"`{family}`", *cells])
        matrix.written("matrix", ["family", *(f"to `{target}`" for target in TARGETS)], rows, notes)
    rows_by_family, _ = matrix.read("matrix")
    assert list(rows_by_family) == list(FAMILIES), (
        f"if right: pytest tests/checkpoints/test_matrix.py {UPDATE}"
    )
