"""Names that a training of transformers 5 has in memory, and that its files have not."""

from __future__ import annotations

import pytest

from hpctrain_plugins.checkpoints.formats.hf.in_memory import as_in_files
from hpctrain_plugins.checkpoints.tensors import Model, zeros

_FUSED = {
    "mlp.gate.weight": (4, 8),
    "mlp.experts.gate_up_proj": (4, 12, 8),
    "mlp.experts.down_proj": (4, 8, 6),
}


def _model(family: str, shapes: dict[str, tuple[int, ...]]) -> Model:
    named = {f"model.layers.1.{name}": shape for name, shape in shapes.items()}
    return Model({n: zeros(n, "BF16", s) for n, s in named.items()}, config={"model_type": family})


@pytest.mark.parametrize(
    ("family", "router", "names"),
    [
        ("mixtral", "block_sparse_moe.gate", "block_sparse_moe.experts.{}.{}".format),
        ("olmoe", "mlp.gate", "mlp.experts.{}.{}".format),
    ],
)
def test_experts_lie_one_by_one(family: str, router: str, names: object) -> None:
    assert callable(names)
    model = _model(family, _FUSED)
    as_in_files(model)
    parts = ("w1", "w3", "w2") if family == "mixtral" else ("gate_proj", "up_proj", "down_proj")
    want = {f"model.layers.1.{router}.weight": (4, 8)}
    for expert in range(4):
        for part, shape in zip(parts, ((6, 8), (6, 8), (8, 6)), strict=True):
            want[f"model.layers.1.{names(expert, part)}.weight"] = shape
    assert {name: tensor.shape for name, tensor in model.tensors.items()} == want
    assert all(tensor.name == name for name, tensor in model.tensors.items())
    as_in_files(model)
    assert set(model.tensors) == set(want)


def test_a_family_without_a_table_is_left_with_a_warning() -> None:
    model = _model("glm4_moe", _FUSED)
    as_in_files(model)
    assert set(model.tensors) == {f"model.layers.1.{name}" for name in _FUSED}
    (warning,) = model.warnings
    assert warning.startswith("model.layers.1.mlp.experts.gate_up_proj holds all experts")
    assert "glm4_moe" in warning


def test_files_that_hold_all_experts_together_are_no_reason_to_warn() -> None:
    model = _model("gpt_oss", {**_FUSED, "mlp.experts.gate_up_proj_bias": (4, 12)})
    as_in_files(model)
    assert model.warnings == []
