"""Every trainer that we ship holds what the kit asks of anybody's."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from hpctrain.testing import TrainerConformance

DATA = Path(__file__).parent
LOGS = {path.stem: path.read_text(encoding="utf-8") for path in DATA.glob("data/metric_logs/*.log")}
PROGRAM = """
import sys, time
from pathlib import Path
from hpctrain_job import resume
from hpctrain_job.signals import EXIT_SAVED, Stop
folder, steps, stop = Path(sys.argv[1]), int(sys.argv[2]), Stop().listen()
newest = resume.newest(folder, r"checkpoint-(?P<step>\\d+)", "done")
for step in range(newest.step + 1 if newest else 1, steps + 1):
    time.sleep(0.05)
    print(f"step={step} loss={1 / step}", flush=True)
    if stop or step == steps:
        (folder / f"checkpoint-{step}").mkdir(parents=True)
        (folder / f"checkpoint-{step}/done").touch()
    if stop:
        sys.exit(EXIT_SAVED)
"""


class TestCommand(TrainerConformance):
    trainer, live = "command", True
    files: ClassVar = {"train.py": PROGRAM}
    options: ClassVar = {
        "argv": ["python3", "{folder}/train.py", "{checkpoints}", "40"],
        "metrics": r"step=(?P<step>\d+) loss=(?P<loss>\S+)",
        "checkpoints": ".",
        "checkpoint_last": "done",
    }
    log = "step=1 loss=1.0\nstep=2 loss=0.5\n"
    checkpoint_names = ("checkpoint-5", "checkpoint-10")
    fails = ('train.command.argv=["python3", "{folder}/missing.py"]',)


class TestTrl(TrainerConformance):
    trainer, log = "trl", LOGS["trl"]
    options: ClassVar = {"max_steps": 10, "per_device_train_batch_size": 1, "train_dataset": "dataset"}
    sets = ('assets.model.hub="Qwen/Qwen3-0.6B"', 'assets.dataset.hub="trl-lib/Capybara"')
    checkpoint_names = ("checkpoint-5", "checkpoint-10")


class TestNanotron(TrainerConformance):
    trainer, cluster, log = "nanotron", "alps", LOGS["nanotron"]
    examples = (str(DATA / "external/data/alps.toml"),)
    checkpoint_names = ("5", "10")


class TestNeox(TrainerConformance):
    trainer, cluster, log = "neox", "isambard", LOGS["neox"]
    examples = (str(DATA / "external/data/isambard.toml"),)
    checkpoint_names = ("global_step5", "global_step10")


class TestAutomodel(TrainerConformance):
    trainer, cluster, log = "automodel", "leonardo", LOGS["automodel"]
    examples = (str(DATA / "external/data/leonardo.toml"),)
    checkpoint_names = ("epoch_0_step_5", "epoch_0_step_10")
