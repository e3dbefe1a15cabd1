"""Models of transformers 5 as a training holds them: some names and shapes are not those of their files.

`save_pretrained` turns them into the files' own; what saves a training's state does not, so torch's
distributed checkpoints and DeepSpeed's have them as they are.
https://github.com/huggingface/transformers/blob/v5.0.0/src/transformers/conversion_mapping.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hpctrain_plugins.checkpoints.tensors import Model, Tensor

_HEADS = {"gpt_neox": ("lm_head.weight", "embed_out.weight")}
"""What the head is called by a training, and in files."""

_ROUTER = "mlp.gate.weight"
_QWEN = (_ROUTER, *(f"mlp.experts.{{}}.{name}_proj.weight" for name in ("gate", "up", "down")))
_MIXTRAL = "block_sparse_moe"
_EXPERTS: Mapping[str, tuple[str, ...]] = {
    "mixtral": (
        f"{_MIXTRAL}.gate.weight",
        *(f"{_MIXTRAL}.experts.{{}}.{w}.weight" for w in ("w1", "w3", "w2")),
    ),
    "qwen3_moe": _QWEN,
    "olmoe": _QWEN,
}
"""In files: the router, then gate, up and down of each expert."""

_FUSED_EXPERTS = ".mlp.experts.gate_up_proj"
_FUSED = re.compile(
    r"(?P<layer>.+\.layers\.\d+\.)mlp\.(?P<part>experts\.gate_up_proj|experts\.down_proj|gate\.weight)$"
)


def as_in_files(model: Model) -> None:
    """Give the model the names and tensors of its files; one that has them already stays as it is."""
    family = str(model.config.get("model_type"))
    trained_name, file_name = _HEADS.get(family, ("", ""))
    if trained_name in model.tensors:
        model.tensors[file_name] = model.tensors.pop(trained_name).named(file_name)
    if trained_name in model.tied:
        model.tied[file_name] = model.tied.pop(trained_name)
    fused = next((name for name in model.tensors if name.endswith(_FUSED_EXPERTS)), "")
    if fused and family in _EXPERTS:
        _take_apart(model, _EXPERTS[family])
    elif fused and f"{fused}_bias" not in model.tensors:  # gpt-oss has it, whose files have them so too
        message = f"{fused} holds all experts, as a training of transformers 5 does; the files of {family}"
        model.warnings.append(f"{message} may hold them one by one, and here is no table that says so")


def _take_apart(model: Model, names: tuple[str, ...]) -> None:
    """The experts of every layer one by one."""
    for name in list(model.tensors):
        match = _FUSED.match(name)
        if match:
            whole = model.tensors.pop(name)
            for rest, tensor in _unfused(whole, match["part"], names):
                full = match["layer"] + rest
                model.tensors[full] = tensor.named(full)


def _unfused(whole: Tensor, part: str, names: tuple[str, ...]) -> list[tuple[str, Tensor]]:
    """What one tensor of a layer is in files: all experts lie in it, one behind the other."""
    router, gate, up, down = names
    if part == "gate.weight":
        return [(router, whole)]
    out = []
    for number in range(whole.shape[0]):
        expert = whole.part(0, number, number + 1).shaped(*whole.shape[1:])
        parts = (
            [(down, expert)]
            if part.endswith("down_proj")
            else list(zip((gate, up), expert.chunk(0, 2), strict=True))
        )
        out += [(name.format(number), tensor) for name, tensor in parts]
    return out
