"""Models of many families as DeepSpeed saves them on two ranks: arguments DIR and the families as JSON.

DIR/FAMILY/hf is the model; a step with a rate of zero leaves its weights as they are. Below DIR/FAMILY:
deepspeed-zero/ of stage 2, and deepspeed-universal/, what DeepSpeed's own script makes of it.
"""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import json
import shutil
import sys
from pathlib import Path

import deepspeed
import torch
import transformers
from ranks import start

NAME = "deepspeed-zero"


def train(rank, folder, families):
    for family in families:
        home = folder.parent / family
        model = transformers.AutoModelForCausalLM.from_pretrained(home / "hf", dtype=torch.float32)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=0.0)
        config = {
            "train_micro_batch_size_per_gpu": 1,
            "zero_allow_untested_optimizer": True,
            "zero_optimization": {"stage": 2},
        }
        engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
        tokens = torch.arange(3, 11)[None]
        engine.backward(engine(input_ids=tokens, labels=tokens).loss)
        engine.step()
        engine.save_checkpoint(str(home / NAME), tag="step1")
        if rank == 0:
            model.config.save_pretrained(home / NAME)


def universal(home):
    from deepspeed.checkpoint import ds_to_universal

    out = home / "deepspeed-universal"
    folders = ["--input_folder", str(home / NAME / "step1"), "--output_folder", str(out / "step1_universal")]
    alone = ["--num_extract_workers", "1", "--num_merge_workers", "1", "--inject_missing_state"]
    sys.argv = ["ds_to_universal", *folders, *alone]
    ds_to_universal.main(ds_to_universal.parse_arguments())
    shutil.copy(home / NAME / "config.json", out)


if __name__ == "__main__":
    root, families = Path(sys.argv[1]), json.loads(sys.argv[2])
    start(train, 2, root / "zero-ranks", families)
    for family in families:
        universal(root / family)
