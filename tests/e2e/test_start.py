"""A training that starts elsewhere and then goes on from its own checkpoints, in real jobs of this computer.

The stand-in for NeoX reads what NeoX reads: `load` with its file `latest`, `finetune` and `save`.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

from tests.e2e.product import Product
from tests.patience import wait_for

WALKS = Path(__file__).with_name("walks")
ARGUMENTS = '''
import json
from pathlib import Path


class NeoXArgs:
    @classmethod
    def from_ymls(cls, files, overwrite_values):
        arguments = cls()
        text = "".join(Path(name).read_text() for name in files)
        arguments.values = json.loads(text) if text[0] == "{" else read(text)
        arguments.__dict__.update(arguments.values, **overwrite_values)
        return arguments

    def get_deepspeed_main_args(self):
        return [self.user_script, json.dumps(self.values)]


def read(text):
    """Plain keys of YAML at the left edge: all that this stand-in needs, without a package."""
    pairs = (line.split(": ", 1) for line in text.splitlines() if ": " in line and line[0] != " ")
    return {key: value.strip('"') for key, value in pairs}
'''
TRAIN = """
import json
import sys
from pathlib import Path


def main():
    config = json.loads(sys.argv[1])
    latest = Path(config.get("load", "none"), "latest")
    step = int(latest.read_text().removeprefix("global_step")) if latest.is_file() else -1
    if config.get("finetune") == "true":
        step = 0
    print("begins at", step, "of", config.get("load"), flush=True)
    whole = Path(config["save"], f"global_step{step + 5}")
    (whole / "configs").mkdir(parents=True)
    (whole / "configs/neox.yml").touch()
    Path(config["save"], "latest").write_text(whole.name)
    sys.exit(0 if step else 1)


if __name__ == "__main__":
    main()
"""
PYBIND11 = 'print("")  # stand-in: the helpers of this stand-in need no headers of its'
RUN = """
name    = "sft"
cluster = "local"

[resources]
nodes = 1
time  = "5m"

[environment]
use = ""

[code]
path = "code"

[checkpoint]
start = "{start}"

[train]
use = "neox"

[train.neox.settings]
num_layers = 2
hidden_size = 8
num_attention_heads = 2
seq_length = 8
max_position_embeddings = 8
lr_decay_iters = 10
train_iters = 10
train_micro_batch_size_per_gpu = 1
checkpoint_factor = 5
tokenizer_type = "HFTokenizer"
vocab_file = "/tokenizer.json"
optimizer = {{ type = "Adam", params = {{ lr = 0.001 }} }}
finetune = true
"""


def _written(here: Product, start: Path) -> None:
    here.write(RUN.format(start=start))
    package = here.folder / "code/megatron/neox_arguments"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").write_text(ARGUMENTS)
    for part in ("data", "fused_kernels"):
        shutil.copytree(WALKS / "neox/megatron" / part, package.parent / part)
    (here.folder / "code/train.py").write_text(TRAIN)
    (here.folder / "code/pybind11.py").write_text(PYBIND11)
    (here.folder / "bin").mkdir()
    (here.folder / "bin/python").symlink_to(sys.executable)


def _begun(here: Product) -> list[tuple[str, str]]:
    """Step and folder of each attempt, from the log of the training."""
    (run,) = (here.home / ".local/share/hpctrain/runs/sft").glob("1-*")
    text = "".join(path.read_text() for path in sorted((run / "logs").glob("train*")))
    return re.findall(r"begins at (\S+) of (\S+)", text)


def test_the_first_attempt_starts_there_and_the_next_goes_on(here: Product) -> None:
    start = here.folder / "converted"
    start.mkdir()
    (start / "latest").write_text("global_step900")
    _written(here, start)
    assert re.search(rf"^start +{start} \(first attempt", here("plan").stdout, re.M)
    explained = here("plan", "--explain", "start").stdout
    assert str(start) in explained
    assert "run.toml:" in explained
    path = f"{here.folder}/bin:{here.environment['PATH']}"
    here("submit", "--wait", code=8, PATH=path)
    assert _begun(here) == [("0", str(start))]
    here("continue", PATH=path)
    wait_for("the second attempt", lambda: len(_begun(here)) == 2)
    (own,) = (here.home / ".local/share/hpctrain/checkpoints/sft").iterdir()
    assert _begun(here) == [("0", str(start)), ("5", str(own))]


def test_a_start_that_is_not_there_trains_nothing(here: Product) -> None:
    _written(here, here.folder / "nowhere")
    here("submit", "--wait", code=8)
    (run,) = (here.home / ".local/share/hpctrain/runs/sft").glob("1-*")
    assert f"{here.folder}/nowhere/latest does not exist" in (run / "logs/train.log").read_text()
    assert _begun(here) == []
    assert json.loads((run / "steps/train/exit").read_text())["code"] == 1
