"""What a user of TRL writes after its documentation: the other side of `bench/train.py`."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import torch
from datasets import load_dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import SFTConfig, SFTTrainer

parser = argparse.ArgumentParser()
parser.add_argument("--config", type=Path, required=True)
given = json.loads(parser.parse_args().config.read_text())
here = Path(os.environ["HPC_RUN"])


class Rates(TrainerCallback):  # type: ignore[misc]
    """Tokens a second between two rows, as the trainer of the other side counts them."""

    mark = (time.monotonic(), 0)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if state.is_world_process_zero and "loss" in (logs or {}):
            now, tokens = time.monotonic(), state.num_input_tokens_seen
            row = {"step": state.global_step, "tokens_per_s": (tokens - self.mark[1]) / (now - self.mark[0])}
            self.mark = (now, tokens)
            with (here / "metrics.jsonl").open("a") as out:
                out.write(json.dumps(row) + "\n")


gpu = torch.cuda.is_available()
lora = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear")
trainer = SFTTrainer(
    model=AutoModelForCausalLM.from_pretrained(given["model"], dtype="bfloat16" if gpu else "float32"),
    processing_class=AutoTokenizer.from_pretrained(given["model"]),
    train_dataset=load_dataset("json", data_files=given["train_dataset"], split="train"),
    peft_config=lora if given["method"] == "lora" else None,
    args=SFTConfig(
        output_dir=str(here / "checkpoints"),
        max_steps=given["max_steps"],
        max_length=given["max_length"],
        per_device_train_batch_size=given["per_device_train_batch_size"],
        learning_rate=given["learning_rate"],
        logging_steps=given["logging_steps"],
        bf16=gpu,
        use_cpu=not gpu,
        include_num_input_tokens_seen="all",
        save_strategy="no",
        report_to="none",
    ),
    callbacks=[Rates()],
)
trainer.train()
