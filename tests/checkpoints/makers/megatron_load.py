"""Load with megatron-core and compare bit by bit: arguments DIR and the settings of each load as JSON.

What a load's settings call `step` is the folder to read. Prints by the load's name which keys were compared,
and which of them are not the numbers that megatron_make.py gave the model.
"""

# mypy: ignore-errors
# It runs in the environment with megatron-core, which the type checker does not see.

import json
import sys
from pathlib import Path

import torch
from megatron_here import built, compared, dist_checkpointing, metadata_of, on_ranks


def load(folder, args, sizes):
    metadata = metadata_of(args)
    model = built(args, **sizes)
    state = {"model": model.sharded_state_dict(metadata=metadata)}
    loaded = dist_checkpointing.load(state, args.step)
    model.load_state_dict(loaded["model"])
    keys = compared(model, metadata)
    wrong = sorted(key for key, equal in keys.items() if not equal)
    rank = torch.distributed.get_rank()
    (folder / f"rank{rank}.json").write_text(json.dumps({"keys": sorted(keys), "wrong": wrong}))


if __name__ == "__main__":
    out = {}
    for name, settings in json.loads(sys.argv[2]).items():
        folder = Path(sys.argv[1]) / name
        folder.mkdir(parents=True)
        on_ranks(load, folder, settings)
        ranks = [json.loads(file.read_text()) for file in folder.glob("rank*.json")]
        out[name] = {what: sorted({k for rank in ranks for k in rank[what]}) for what in ("keys", "wrong")}
    print(json.dumps(out))
