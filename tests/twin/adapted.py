"""What shipped examples become on a twin; every changed key has its reason in substitutions.toml."""

from __future__ import annotations

import re
import sys

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
OLIVIA = """[code]
path = "code"

[train]
use = "command"

[train.command]
argv = [
  "python", "train.py", "--model", "{assets.model}", "--wandb_project", "olivia_test", "--run_name", "test1",
  "--train_dataset", "{assets.dataset}/train.jsonl:train",
  "--eval_dataset", "{assets.evaluation}/validation.jsonl:validation",
  "--train_source_field", "nb", "--train_target_field", "nn",
  "--eval_source_field", "nb", "--eval_target_field", "nn_husnorm",
  "--per_device_train_batch_size", "8", "--per_device_eval_batch_size", "8", "--learning_rate", "2e-5",
  "--warmup_steps", "10000", "--num_train_epochs", "6", "--eval_steps", "5000", "--save_steps", "50000",
  "--logging_steps", "1000", "--output_dir", "{checkpoints}",
]
"""


def alps(text: str, commit: str) -> str:
    """nanotron-wikitext: the twin's index has no large package, and its images no compiler."""
    text = re.sub(r'rev = "[0-9a-f]{40}"', f'rev = "{commit}"', text)
    text = re.sub(r'"datasets".*"tqdm",', '"setuptools", "twin-pure",', text)
    return re.sub(r"^(compile|python) = .*", "", text, flags=re.M)


def frontier(text: str, python: str = PYTHON) -> str:
    """tutorial, for the twin's Python, index and processors."""
    text = text.replace('python = "3.10"', f'python = "{python}"')
    text = re.sub(r"packages = \[.*?^\]", 'packages = ["torch-of-the-twin"]', text, flags=re.S | re.M)
    text = re.sub(r"^first = .*\n", "first = []\nverify = false\n", text, flags=re.M)
    text = text.replace('programs = ["hipcc", "g++"]', 'programs = ["gcc"]').replace("zero_stage = 3\n", "")
    return text.replace('report_to = "tensorboard"\n', "max_length = 64\n")


def isambard(text: str, folder: str, packages: tuple[str, ...]) -> str:
    """neox-pretrain: two nodes, the twin's one Python, and of the packages those that its index has."""
    text = text.replace("nodes = 8 ", "nodes = 2 ").replace('time = "24h"', 'time = "10m"')
    listed = ", ".join(f'"{name}"' for name in packages)
    chosen = f'packages = [{listed}]\npython = "3.13"'
    text = re.sub(r"^stack = .*?^packages = \[.*?^\]", chosen, text, flags=re.M | re.S)
    text = re.sub(r"^compile = .*", 'compile = ["flash-attn==2.6.3"]', text, flags=re.M)
    build = "\n[environment.uv]\nown_python = false\n"
    build += '\n[environment.uv.builds.flash-attn]\nbuild = ["ninja", "packaging"]\n'
    assets = "".join(f'{name} = {{ path = "{folder}/{name}" }}\n' for name in ("tokenizer", "tokens"))
    text = re.sub(r"\[assets\]\n.*?(?=\[train\])", f"[assets]\n{assets}\n", text, flags=re.S)
    return f'{text}\n[env]\nWALK_START = "{folder}/neox-start"\n{build}'


def leonardo(text: str, more: str = "") -> str:
    """nemotron-lora: the document's own tree instead of a release; `more` are lines beside it."""
    tree = f'packages = [{{ name = "nemo-automodel", path = "Automodel" }}]{more}'
    return re.sub(r'packages = \["nemo-automodel.*', tree, text).replace("1.5.3.post1", "1.5.3")


def olivia(text: str) -> str:
    """sft-1gpu, with the document's own program as a command."""
    return text.partition("[train]")[0] + OLIVIA
