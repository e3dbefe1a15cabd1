"""Training with the real DeepSpeed that goes on where a checkpoint was saved: JSON, a list of jobs.

A job is [DIR, SPEC]; SPEC: stage, world, dtype, load (a folder, or none), steps, frozen (whether a layer is),
universal (whether what is loaded is such a checkpoint, or one is to be made). DIR gets ckpt/ as it was
after the first half of the steps (when nothing was loaded), want.safetensors with the model's weights
there, and losses.json, of the whole batch each; with `universal` also what DeepSpeed's own script makes
of it.
"""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import json
import sys
from pathlib import Path

import deepspeed
import torch
from ranks import start
from safetensors.torch import save_file

BATCH = 12


class Net(torch.nn.Module):
    """Sizes that no world divides, in two groups; perhaps a frozen layer and a buffer."""

    def __init__(self, frozen):
        super().__init__()
        self.embed = torch.nn.Embedding(37, 13)
        self.first = torch.nn.Linear(13, 29)
        self.second = torch.nn.Linear(29, 37)
        self.frozen = torch.nn.Linear(29, 29) if frozen else torch.nn.Identity()
        self.frozen.requires_grad_(False)
        self.register_buffer("scale", torch.linspace(1, 2, 29) if frozen else None)

    def forward(self, tokens):
        out = self.frozen(torch.tanh(self.first(self.embed(tokens[:, :-1]))))
        out = self.second(out if self.scale is None else out * self.scale.to(out.dtype))
        return torch.nn.functional.cross_entropy(out.flatten(0, 1).float(), tokens[:, 1:].flatten())


def train(rank, folder, spec):
    torch.manual_seed(1)
    model, world = Net(spec.get("frozen", False)), spec["world"]
    if spec.get("load"):  # what is not read from the checkpoint must not pass for it
        with torch.no_grad():
            for tensor in (*model.parameters(), *model.buffers()):
                tensor.mul_(7)
    trained = [p for p in model.parameters() if p.requires_grad]
    weights = [p for p in trained if p.ndim > 1]
    biases = [p for p in trained if p.ndim == 1]
    optimizer = torch.optim.AdamW(
        [{"params": weights, "weight_decay": 0.5}, {"params": biases, "weight_decay": 0.0}], lr=1e-2
    )
    config = {
        "train_micro_batch_size_per_gpu": BATCH // world,
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {"stage": spec["stage"], **spec.get("zero", {})},
        **({"bf16": {"enabled": True}} if spec["dtype"] == "bfloat16" else {}),
        **({"checkpoint": {"load_universal": True}} if spec.get("universal") else {}),
    }
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    first = 0
    if spec.get("load"):
        engine.load_checkpoint(spec["load"])
        first = engine.global_steps
    losses = []
    for step in range(first, spec["steps"]):
        if step == spec["steps"] // 2 and not spec.get("load"):
            engine.save_checkpoint(str(folder / "ckpt"))
            if rank == 0 and spec["stage"] < 3:
                save_file(dict(engine.module.state_dict()), folder / "want.safetensors")
        tokens = torch.randint(0, 37, (BATCH, 7), generator=torch.Generator().manual_seed(step))
        loss = engine(tokens.chunk(world)[rank])
        engine.backward(loss)
        engine.step()
        mean = loss.detach().float().clone()
        torch.distributed.all_reduce(mean)
        losses.append(float(mean) / world)
    if rank == 0:
        (folder / "losses.json").write_text(json.dumps(losses))


def universal(folder):
    """Let DeepSpeed's own script put the checkpoint's parameters apart, beside the ranks' files."""
    from deepspeed.checkpoint import ds_to_universal

    step = folder / "ckpt/global_step2"
    folders = ["--input_folder", str(step), "--output_folder", f"{step}_universal"]
    alone = ["--num_extract_workers", "1", "--num_merge_workers", "1", "--inject_missing_state"]
    sys.argv = ["ds_to_universal", *folders, *alone]
    ds_to_universal.main(ds_to_universal.parse_arguments())


if __name__ == "__main__":
    for place, spec in json.loads(sys.argv[1]):
        start(train, spec["world"], Path(place), spec)
        if spec.get("universal") and not spec.get("load"):
            universal(Path(place))
