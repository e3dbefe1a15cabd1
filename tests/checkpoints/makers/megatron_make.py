"""Save with megatron-core as Megatron-LM does: arguments DIR and the settings of each checkpoint as JSON.

DIR/NAME/iter_0000007 is what every rank saved together; DIR/NAME/logits.json what the model computes of its
tokens, where one rank holds all of it.
"""

# mypy: ignore-errors
# It runs in the environment with megatron-core, which the type checker does not see.

import json
import sys
from pathlib import Path

import torch
from megatron_here import STEP, built, dist_checkpointing, filled, metadata_of, on_ranks, parallel_state

KINDS = {"tensor": "tp", "pipeline": "pp", "expert": "ep"}
TOKENS = [5, 17, 3, 99, 42, 8, 61, 27]


def save(folder, args, sizes):
    metadata = metadata_of(args)
    model = filled(built(args, **sizes), metadata)
    step = folder / f"iter_{STEP:07d}"
    step.mkdir(exist_ok=True)
    if args.legacy:
        save_share(step, model, args, sizes)
        return
    state = {
        "args": args,
        "checkpoint_version": 3.0,
        "iteration": STEP,
        "model": model.sharded_state_dict(metadata=metadata),
    }
    dist_checkpointing.save(state, str(step), content_metadata=metadata)
    if set(sizes.values()) == {1}:
        (folder / "logits.json").write_text(json.dumps({"tokens": TOKENS, "logits": logits(model)}))


def save_share(step, model, args, sizes):
    """What Megatron-LM's --ckpt-format torch writes: the folder's name says whose it is."""
    args.__dict__ |= {f"{kind}_model_parallel_size": sizes[size] for kind, size in KINDS.items()}
    name = f"mp_rank_{parallel_state.get_tensor_model_parallel_rank():02d}"
    if sizes["pp"] > 1:
        name += f"_{parallel_state.get_pipeline_model_parallel_rank():03d}"
    if sizes["ep"] > 1:
        name += f"_{parallel_state.get_expert_model_parallel_rank():03d}"
    (step / name).mkdir()
    state = {"args": args, "checkpoint_version": 3.0, "iteration": STEP}
    state["model"] = model.state_dict_for_save_checkpoint()
    torch.save(state, step / name / "model_optim_rng.pt")


def logits(model):
    tokens = torch.tensor([TOKENS])
    position = torch.arange(len(TOKENS)).unsqueeze(0)
    future = torch.ones(1, 1, len(TOKENS), len(TOKENS)).tril() < 0.5
    with torch.no_grad():
        return model.eval()(tokens, position, future)[0].float().tolist()


if __name__ == "__main__":
    for name, settings in json.loads(sys.argv[2]).items():
        folder = Path(sys.argv[1]) / name
        folder.mkdir(parents=True)
        on_ranks(save, folder, settings)
        (folder / "latest_checkpointed_iteration.txt").write_text(str(STEP))
