"""Training with the real DeepSpeed that goes on where a checkpoint was saved: JSON, a list of jobs.

A job is [DIR, SPEC]; SPEC: stage, world, dtype, load (a folder, or none), steps. DIR gets ckpt/ as it was
after the first half of the steps (when nothing was loaded) and losses.json, of the whole batch each.
"""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import json
import sys
from pathlib import Path

import deepspeed
import torch
from ranks import start

BATCH = 12


class Net(torch.nn.Module):
    """Sizes that no world divides, in two groups."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(37, 13)
        self.first = torch.nn.Linear(13, 29)
        self.second = torch.nn.Linear(29, 37)

    def forward(self, tokens):
        out = self.second(torch.tanh(self.first(self.embed(tokens[:, :-1]))))
        return torch.nn.functional.cross_entropy(out.flatten(0, 1).float(), tokens[:, 1:].flatten())


def train(rank, folder, spec):
    torch.manual_seed(1)
    model, world = Net(), spec["world"]
    weights = [p for p in model.parameters() if p.ndim > 1]
    biases = [p for p in model.parameters() if p.ndim == 1]
    optimizer = torch.optim.AdamW(
        [{"params": weights, "weight_decay": 0.5}, {"params": biases, "weight_decay": 0.0}], lr=1e-2
    )
    config = {
        "train_micro_batch_size_per_gpu": BATCH // world,
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {"stage": spec["stage"], **spec.get("zero", {})},
        **({"bf16": {"enabled": True}} if spec["dtype"] == "bfloat16" else {}),
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
        tokens = torch.randint(0, 37, (BATCH, 7), generator=torch.Generator().manual_seed(step))
        loss = engine(tokens.chunk(world)[rank])
        engine.backward(loss)
        engine.step()
        mean = loss.detach().float().clone()
        torch.distributed.all_reduce(mean)
        losses.append(float(mean) / world)
    if rank == 0:
        (folder / "losses.json").write_text(json.dumps(losses))


if __name__ == "__main__":
    for place, spec in json.loads(sys.argv[1]):
        start(train, spec["world"], Path(place), spec)
