"""How fast `trl` trains, beside the script that a user of TRL would write, in the same sitting.

`python bench/train.py [1b|8b|tiny] [lora|sft] [STEPS]` by an interpreter with torch, transformers, trl and
peft; for several GPUs under torchrun, with BENCH_WORK naming a folder that all ranks see. Weights are random
and rows synthetic, 4096 tokens each: only speed is measured. MFU is printed with the attention scores in
full and halved. Without a GPU only `tiny` makes sense: it shows that the benchmark runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = Path(__file__).with_name("train_plain.py")
_LLAMA = {
    "model_type": "llama",
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "num_key_value_heads": 8,
}
SHAPES: dict[str, dict[str, Any]] = {
    "1b": {
        **_LLAMA,
        "hidden_size": 2048,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "intermediate_size": 8192,
        "tie_word_embeddings": True,
    },
    "8b": {
        **_LLAMA,
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "intermediate_size": 14336,
    },
    "tiny": {
        **_LLAMA,
        "vocab_size": 384,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 128,
    },
}
PEAKS = {"H100": 989.0, "H200": 989.0, "GH200": 989.0, "A100": 312.0, "MI250X": 191.5}
"""Dense bfloat16 TFLOP/s, by a piece of the GPU's name."""
ROWS = 512


def main(shape: str = "tiny", method: str = "sft", steps: str = "20") -> int:
    """Both, one after the other, and a row for each."""
    rank = int(os.environ.get("RANK", "0"))
    with tempfile.TemporaryDirectory(prefix="bench-trl-") as folder:
        work = Path(os.environ.get("BENCH_WORK") or folder)
        if rank == 0:
            prepare(work, SHAPES[shape], 64 if shape == "tiny" else 4096)
        _wait_for(work / "ready")
        values = settings(work, shape, method, int(steps))
        ours, plain = _measured("hpctrain_trl", values, work), _measured(str(SCRIPT), values, work)
    if rank == 0:
        print("| | tokens/s of a GPU | TFLOP/s | MFU (full) | MFU (causal) |\n|---|---|---|---|---|")
        for name, found in (("hpctrain", ours), ("a plain TRL script", plain)):
            print(f"| {name}, {shape} {method} | {_said(found, shape, method, values['max_length'])} |")
    return 0


def settings(work: Path, shape: str, method: str, steps: int) -> dict[str, Any]:
    """The trainer's settings; the plain script takes the same where it has them."""
    large = shape != "tiny"
    return {
        "method": method,
        "model": str(work / "model"),
        "train_dataset": str(work / "rows.jsonl"),
        "max_length": 4096 if large else 64,
        "max_steps": steps,
        "per_device_train_batch_size": 2 if large else 4,
        "learning_rate": 1e-5,
        "packing": "on" if large else "off",
        "activation_checkpointing": shape == "8b",
        "compile": large,
        "logging_steps": max(1, steps // 4),
        "peak_tflops": peak(),
    }


def peak() -> float:
    """The peak of this GPU; 0 where it is not known."""
    import torch

    name = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    return next((value for piece, value in PEAKS.items() if piece in name), 0.0)


def prepare(work: Path, config: Mapping[str, Any], length: int) -> None:
    """Random weights, a tokenizer of bytes, and rows of `length` tokens."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

    work.mkdir(parents=True, exist_ok=True)
    shape = AutoConfig.for_model(**config)
    model = AutoModelForCausalLM.from_config(shape, dtype=torch.bfloat16 if length > 64 else torch.float32)
    model.save_pretrained(work / "model")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = Tokenizer(models.BPE({word: i for i, word in enumerate([*letters, "<|end|>"])}, []))
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<|end|>", pad_token="<|end|>")  # noqa: S106
    fast.save_pretrained(work / "model")
    row = json.dumps({"text": "x" * length})
    (work / "rows.jsonl").write_text(f"{row}\n" * ROWS)
    (work / "ready").touch()


def _measured(program: str, values: Mapping[str, Any], work: Path) -> float:
    """Tokens a second of one GPU, over the last half of the steps."""
    run = work / Path(program).stem
    run.mkdir(exist_ok=True)
    (run / "trl.json").write_text(json.dumps(dict(values)))
    start = ["-m", program] if program == "hpctrain_trl" else [program]
    path = os.pathsep.join([str(ROOT / "core"), str(ROOT / "plugins")])
    env = {**os.environ, "PYTHONPATH": path, "HPC_RUN": str(run), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, *start, "--config", str(run / "trl.json")]
    subprocess.run(command, env=env, check=True, timeout=3600)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rates = [row["tokens_per_s"] for row in rows if row.get("tokens_per_s")]
    last = rates[len(rates) // 2 :]
    return float(sum(last) / len(last) / int(os.environ.get("WORLD_SIZE", "1")))


def _said(rate: float, shape: str, method: str, length: int) -> str:
    from hpctrain_job.arithmetic.model_shape import Shape

    counted = Shape.of(SHAPES[shape])
    assert counted is not None
    flops = [counted.flops_per_token(length, causal=c, frozen=method == "lora") for c in (False, True)]
    top = peak() * 1e12
    shares = [f"{rate * each / top:.1%}" if top else "-" for each in flops]
    return " | ".join([f"{rate:,.0f}", f"{rate * flops[0] / 1e12:.4g}", *shares])


def _wait_for(path: Path, seconds: float = 900) -> None:
    end = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(f"{path} was not made")
        time.sleep(0.2)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "core"))
    sys.exit(main(*sys.argv[1:]))
