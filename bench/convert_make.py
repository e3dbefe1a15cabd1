"""Checkpoints of a chosen size for the benchmark, written without torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from hpctrain_plugins.checkpoints.containers import torchzip_write
from hpctrain_plugins.checkpoints.containers.torchzip_write import Saved
from hpctrain_plugins.checkpoints.containers.unpickle import Size
from hpctrain_plugins.checkpoints.copying.engine import Copy, run
from hpctrain_plugins.checkpoints.copying.reading import Ledger
from hpctrain_plugins.checkpoints.formats import hf
from hpctrain_plugins.checkpoints.formats.zero_files import BASE_OPTIMIZER, MASTERS
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.tensors import Tensor, concat, zeros
from tests.checkpoints.conftest import random_tensors, write_safetensors
from tests.checkpoints.models import GPT_NEOX, LLAMA, shapes

NEOX = {
    **GPT_NEOX,
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "intermediate_size": 8192,
    "vocab_size": 50432,
}
MODEL = {
    **LLAMA,
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "intermediate_size": 5632,
    "vocab_size": 32000,
}
_SIZES = {"BF16": 2, "F32": 4}


def model(folder: Path, config: dict[str, Any], layers: int, dtype: str) -> None:
    """A Hugging Face folder, its numbers written tensor by tensor."""
    folder.mkdir(parents=True)
    config = {**config, "num_hidden_layers": layers}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, shape in shapes(config).items():
        size = int(np.prod(shape)) * _SIZES[dtype]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    random = np.random.default_rng(0)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for shape in shapes(config).values():
            values = random.standard_normal(int(np.prod(shape)), dtype=np.float32) * 0.02
            half = dtype == "BF16"
            bits = (values.view(np.uint32) >> 16).astype(np.uint16)
            file.write(bits.tobytes() if half else values.tobytes())
    (folder / "config.json").write_text(json.dumps(config))


def adapter(folder: Path, base: Path, layers: int) -> None:
    """A LoRA adapter of rank 8 on every linear layer."""
    folder.mkdir()
    found: dict[str, tuple[int, ...]] = {}
    for name, shape in shapes({**MODEL, "num_hidden_layers": layers}).items():
        if "_proj" in name:
            module = f"base_model.model.{name.removesuffix('.weight')}"
            found[f"{module}.lora_A.weight"] = (8, shape[1])
            found[f"{module}.lora_B.weight"] = (shape[0], 8)
    write_safetensors(folder / "adapter_model.safetensors", random_tensors(1, "F32", found))
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": 8,
        "lora_alpha": 16,
        "target_modules": "all-linear",
        "base_model_name_or_path": str(base.resolve()),
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))


def zero(folder: Path, source: Path, world: int, stage: int) -> None:
    """A ZeRO checkpoint of `source` with its Adam moments, as `world` ranks would write it."""
    step = folder / "global_step1"
    step.mkdir(parents=True)
    (folder / "latest").write_text("global_step1")
    (folder / "config.json").write_bytes((source / "config.json").read_bytes())
    tensors = hf.read(source, ConvertOptions()).tensors
    for rank in range(world):
        part = _share(list(tensors.values()), rank, world, stage)
        moments = {"step": 1, "exp_avg": Saved(part, "F32"), "exp_avg_sq": Saved(part, "F32")}
        optimizer = {
            "zero_stage": stage,
            "partition_count": world if stage == 3 else [world],
            MASTERS[stage]: [Saved(part, "F32")],
            BASE_OPTIMIZER[stage]: {
                "state": {0: moments},
                "param_groups": [{"lr": 1e-3, "weight_decay": 0.1, "params": [0]}],
            },
        }
        name = f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"
        _write(step, name, {"optimizer_state_dict": optimizer, "ds_version": "0.19.8"})
    states = {
        "module": {n: Saved(zeros(n, "BF16", (0,)) if stage == 3 else t, "BF16") for n, t in tensors.items()},
        "param_shapes": [{n: Size(t.shape) for n, t in tensors.items()}],
        "buffer_names": [],
        "shared_params": {},
        "dp_world_size": world,
        "ds_config": {"bf16": {"enabled": True}, "zero_optimization": {"stage": stage}},
        "ds_version": "0.19.8",
        "frozen_param_shapes": None,
        "frozen_param_fragments": None,
    }
    for rank in range(world if stage == 3 else 1):
        prefix = f"zero_pp_rank_{rank}_" if stage == 3 else ""
        _write(step, f"{prefix}mp_rank_00_model_states.pt", states)


def _share(tensors: list[Tensor], rank: int, world: int, stage: int) -> Tensor:
    """What one rank holds: a slice of all parameters in a line, or a share of each."""
    lines = [tensor.shaped(tensor.numel) for tensor in tensors]
    if stage < 3:
        lines = [concat(lines)]
    parts = []
    for line in lines:
        length = -(-line.numel // (2 * world)) * 2 if stage < 3 else -(-line.numel // world)
        parts.append(line.part(0, rank * length, min(line.numel, (rank + 1) * length)))
    return concat(parts)


def _write(folder: Path, name: str, value: dict[str, Any]) -> None:
    copy = Copy(folder, [torchzip_write.plan_file(name, value)], None)
    copy.allocate()
    run(copy.tasks(), Ledger({}), 2)
    copy.seal()
