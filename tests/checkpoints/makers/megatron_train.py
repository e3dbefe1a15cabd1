"""Train with megatron-core's distributed optimizer, save, go on: arguments DIR and the trainings as JSON.

A training is a model's settings with `dp`, `steps`, perhaps `save` (the optimizer's layout) and `more`
steps behind that, or `load` (the folder of a step to go on from). DIR/NAME/iter_0000002 is what the ranks
saved, and DIR/NAME/losses.json the loss of each step. Prints all losses, by name.

What is replaced asks for a GPU, beside one thing: torch's own Adam counts the steps for each weight, where
those for GPUs count once, so a load gives all weights the same count, which then runs too fast.
"""

# mypy: ignore-errors
# It runs in the environment with megatron-core, which the type checker does not see.

import json
import sys
from pathlib import Path

import numpy

if not hasattr(numpy, "product"):
    numpy.product = numpy.prod  # which megatron-core before 0.16 names, and numpy 2 dropped
import torch
import torch._dynamo
from megatron_here import (
    built,
    dist_checkpointing,
    filled,
    on_ranks,
    parallel_state,
)

torch.cuda.FloatTensor = torch.FloatTensor


def on_cpu(make):
    """A function that makes tensors on GPUs, which are not there."""
    return lambda *args, **options: make(
        *args, **options | ({"device": "cpu"} if "device" in options else {})
    )


torch.tensor, torch.zeros, torch.empty = map(on_cpu, (torch.tensor, torch.zeros, torch.empty))
from megatron.core.distributed import (  # noqa: E402
    DistributedDataParallel,
    DistributedDataParallelConfig,
    finalize_model_grads,
)
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer  # noqa: E402
from megatron.core.optimizer.distrib_optimizer import DistributedOptimizer  # noqa: E402

ROWS, LENGTH = 4, 16
set_states = DistributedOptimizer._set_main_param_and_optimizer_states


def with_step(self, parameter, tensors):
    """Set them, with a count of its own."""
    group, order = self.model_param_group_index_map[parameter]
    state = self.optimizer.state[self.optimizer.param_groups[group]["params"][order]]
    state["step"] = state["step"].clone()
    set_states(self, parameter, {**tensors, "step": state["step"]})


DistributedOptimizer._set_main_param_and_optimizer_states = with_step


def train(folder, args, sizes):
    model = filled(built(args, **sizes))
    config = DistributedDataParallelConfig(use_distributed_optimizer=True, overlap_grad_reduce=False)
    wrapped = DistributedDataParallel(model.config, config, model)
    bf16 = args.params_dtype is torch.bfloat16
    settings = OptimizerConfig(
        optimizer="adam",
        lr=1e-2,
        min_lr=1e-2,
        weight_decay=0.1,
        clip_grad=0.0,
        bf16=bf16,
        params_dtype=args.params_dtype,
        use_distributed_optimizer=True,
    )
    optimizer = get_megatron_optimizer(settings, [wrapped])
    done = 0
    if args.load:
        done = load(Path(args.load), model, optimizer)
    saved_at = done + args.steps
    losses = [step(wrapped, optimizer, number) for number in range(done, saved_at)]
    if args.save:
        save(folder, model, optimizer, args, saved_at)
    losses += [step(wrapped, optimizer, number) for number in range(saved_at, saved_at + args.more)]
    if torch.distributed.get_rank() == 0:
        (folder / "losses.json").write_text(json.dumps(losses))


def step(model, optimizer, number):
    """The loss over the batch of all ranks."""
    batch = torch.from_numpy(numpy.random.default_rng(number).integers(0, 128, (ROWS, LENGTH + 1)))
    rank, ranks = parallel_state.get_data_parallel_rank(), parallel_state.get_data_parallel_world_size()
    mine = batch[rank * ROWS // ranks : (rank + 1) * ROWS // ranks]
    position = torch.arange(LENGTH).unsqueeze(0).expand(len(mine), -1)
    future = torch.ones(1, 1, LENGTH, LENGTH).tril() < 0.5
    model.zero_grad_buffer()
    optimizer.zero_grad()
    loss = model(mine[:, :-1].contiguous(), position, future, labels=mine[:, 1:].contiguous()).float().mean()
    loss.backward()
    finalize_model_grads([model])
    optimizer.step()
    whole = loss.detach().clone()
    torch.distributed.all_reduce(whole, group=parallel_state.get_data_parallel_group())
    return (whole / ranks).item()


def state_of(model, optimizer, metadata, *, is_loading):
    weights = model.sharded_state_dict(metadata=metadata)
    return {
        "model": weights,
        "optimizer": optimizer.sharded_state_dict(weights, is_loading=is_loading, metadata=metadata),
    }


def save(folder, model, optimizer, args, done):
    metadata = {"distrib_optim_sharding_type": args.save, "chained_optim_avoid_prefix": True}
    step = folder / f"iter_{done:07d}"
    step.mkdir(exist_ok=True)
    state = {"args": args, "checkpoint_version": 3.0, "iteration": done}
    state |= state_of(model, optimizer, metadata, is_loading=False)
    dist_checkpointing.save(state, str(step), content_metadata=metadata)


def load(step, model, optimizer):
    metadata = dist_checkpointing.load_content_metadata(str(step))
    for part in optimizer.chained_optimizers:
        part._init_optimizer_states_with_dummy_values()
    state = {"iteration": 0, **state_of(model, optimizer, metadata, is_loading=True)}
    loaded = dist_checkpointing.load(state, str(step))
    model.load_state_dict(loaded["model"])
    optimizer.load_state_dict(loaded["optimizer"])
    return dist_checkpointing.load_common_state_dict(str(step))["iteration"]


if __name__ == "__main__":
    out = {}
    for name, settings in json.loads(sys.argv[2]).items():
        folder = Path(sys.argv[1]) / name
        folder.mkdir(parents=True)
        on_ranks(train, folder, {"save": "", "load": "", "steps": 0, "more": 0, **settings})
        out[name] = json.loads((folder / "losses.json").read_text())
    print(json.dumps(out))
