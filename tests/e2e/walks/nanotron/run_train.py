"""Stand-in for nanotron's run_train.py: reads the YAML, prints nanotron's lines, writes its checkpoint."""

import json
import os
import re
import sys
from pathlib import Path

import nanotron

config = Path(sys.argv[sys.argv.index("--config-file") + 1]).read_text()


def said(key: str) -> str:
    """One scalar of the file, wherever it stands."""
    found = re.search(rf'"?{key}"?: "?([^",\n]*)', config)
    return found[1] if found else ""


assert nanotron.__doc__
assert os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"
for place in ("hf_dataset_or_datasets", "tokenizer_name_or_path"):
    assert Path(said(place)).is_dir(), f"{place}: {said(place)}"
rank, steps = int(os.environ["RANK"]), 5
for step in range(1, steps + 1):
    if rank == 0:
        loss = 10 / step
        print(
            f"iteration: {step} / {steps} | consumed_tokens: {65536 * step / 1000:.3g}K"
            f" | elapsed_time_per_iteration_ms: 9 | tokens_per_sec: 7.1M | tokens_per_sec_per_gpu: 888K"
            f" | global_batch_size: 128 | lm_loss: {loss:.3g}"
            f" | lr: 0.001 | model_tflops_per_gpu: 1.0 | hardware_tflops_per_gpu: 1.0 | grad_norm: 0.5"
        )
if rank == 0:
    folder = Path(said("checkpoints_path"), str(steps))
    folder.mkdir(parents=True)
    (folder / "model_config.json").write_text(json.dumps({"stand-in": True}))
