"""Two ranks: by torchrun, stopped again and again, under ZeRO, and on both generations of the libraries."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hpctrain.render import shell
from hpctrain_job import metrics
from hpctrain_plugins.trainers import ranks
from tests.trainers import plans
from tests.trainers.conftest import LIMIT, Trained, ended, free_port, surroundings, wait_for_step

pytestmark = pytest.mark.torch

SAME = ("step", "loss", "lr", "grad_norm", "tokens")
STEPS = 60
GENERATIONS = {"torch_python": "5.", "earlier_python": "4.57."}
"""Fixtures of interpreters, with the version of transformers in each."""
STOPS = {
    "torch_python": sorted(random.Random(6).sample(range(3, STEPS - 9), 5)),
    "earlier_python": [random.Random(7).randrange(3, STEPS - 9)],
}
"""Random steps at which somebody asks the ranks to stop; each attempt goes on from the last."""

COMPILED = """
import sys
from deepspeed.git_version_info import installed_ops
sys.exit(not installed_ops.get("fused_adam"))
"""
"""Ends well where DeepSpeed was built with its own Adam."""


def _bare(settings: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """Half the demo's batch on each rank, a row for every step, nothing but the training."""
    return {
        **settings,
        "per_device_train_batch_size": 16,
        "max_steps": STEPS,
        "logging_steps": 1,
        "generate_eval": "",
        "eval_dataset": "",
        **changes,
    }


def _by_torchrun(folder: Path, values: Mapping[str, Any], python: str) -> Trained:
    """The command that `ranks = "per_node"` plans, on one node."""
    (folder / "trl.json").write_text(json.dumps(values))
    command = f"{shell.words(ranks.torchrun(2), plans.BINDING)} -m hpctrain_trl --config trl.json"
    job = {
        **surroundings(folder),
        "PATH": f"{Path(python).parent}:{os.environ['PATH']}",
        "HPC_NODES": "1",
        "HPC_NODE_RANK": "0",
        "HPC_HEAD": "127.0.0.1",
        "HPC_PORT": free_port(),
    }
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=job, capture_output=True, text=True, timeout=LIMIT
    )
    sys.stdout.write(done.stdout + done.stderr)
    return Trained(folder, done.returncode, done.stdout)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_sixty_steps_under_torchrun(
    generation: str, request: pytest.FixtureRequest, settings: dict[str, Any], tmp_path: Path
) -> None:
    """The demo itself on two ranks, with the same file of settings on either generation of the libraries."""
    values = {**settings, "max_steps": STEPS, "logging_steps": 1}
    found = _by_torchrun(tmp_path, values, request.getfixturevalue(generation))
    assert found.code == 0
    assert found.report["world"] == 2
    assert found.report["versions"]["transformers"].startswith(GENERATIONS[generation])
    assert found.losses[0] == pytest.approx(5.98, abs=0.2)
    assert found.losses[-1] <= 0.5
    answers = found.report["answers"]
    assert answers["before"]["exact"] == 0
    assert answers["after"]["exact"] >= 0.9
    assert answers["after"]["of"] == 200
    assert [row["step"] for row in found.rows if "loss" in row] == list(range(1, STEPS + 1))
    assert (tmp_path / f"checkpoints/checkpoint-{STEPS}/rng_state_1.pth").is_file()


LATE = """
import sys, time
from pathlib import Path
from torch import distributed
from hpctrain_trl.environment import ranks
here, saved = ranks(), Path("saved")
distributed.init_process_group("gloo")
if here.first:
    time.sleep(2)
    saved.touch()
here.leave()
sys.exit(distributed.is_initialized() or not saved.exists())
"""


def test_no_rank_leaves_while_another_saves(torch_python: str, tmp_path: Path) -> None:
    """Slurm ends rank 0 some time after rank 1 is gone, however long the last save takes."""
    world = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    both = [
        subprocess.Popen(
            [torch_python, "-c", LATE], cwd=tmp_path, env=surroundings(tmp_path, {**world, "RANK": rank})
        )
        for rank in ("0", "1")
    ]
    assert [process.wait(LIMIT) for process in both] == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("generation", STOPS)
def test_stops_at_random_steps_change_nothing(
    generation: str,
    request: pytest.FixtureRequest,
    start_two: Callable[..., list[subprocess.Popen[str]]],
    train_two: Callable[..., Trained],
    settings: dict[str, Any],
    tmp_path: Path,
) -> None:
    """One of two ranks hears the signal; both stop at the same step, and the end is the undisturbed one."""
    python, values = request.getfixturevalue(generation), _bare(settings)
    whole = train_two(tmp_path / "whole", values, python=python)
    folder = tmp_path / "parts"
    for number, step in enumerate(STOPS[generation]):
        both = start_two(folder, values, python=python)
        wait_for_step(folder, step, *both)
        both[number % 2].send_signal(signal.SIGUSR1)
        stopped = ended(folder, both)
        assert stopped.code == 75
        assert step <= stopped.report["end"]["step"] < STEPS
    last = train_two(folder, values, python=python)
    assert (whole.code, last.code) == (0, 0)
    one, two = ([{key: row[key] for key in SAME} for row in metrics.newest(r.rows)] for r in (whole, last))
    assert one == two


def test_fsdp_equals_ddp(train_two: Callable[..., Trained], settings: dict[str, Any], tmp_path: Path) -> None:
    """Each rank holds half of the weights, and the losses are the same to four digits."""
    values = _bare(settings, max_steps=6, warmup_steps=0, dtype="float32")
    plain = train_two(tmp_path / "ddp", values)
    shared = train_two(tmp_path / "fsdp", {**values, "fsdp": True})
    assert (plain.code, shared.code) == (0, 0)
    assert len(plain.losses) == 6
    assert shared.losses == pytest.approx(plain.losses, rel=1e-4)
    assert shared.report["parameters"] == plain.report["parameters"]
    whole = [tmp_path / kind / "model/model.safetensors" for kind in ("ddp", "fsdp")]
    assert whole[0].stat().st_size == pytest.approx(whole[1].stat().st_size, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "method"), [(2, "sft"), (3, "lora")])
def test_zero_equals_ddp(
    stage: int,
    method: str,
    deepspeed: dict[str, str],
    train_two: Callable[..., Trained],
    settings: dict[str, Any],
    learnt: Trained,
    tmp_path: Path,
) -> None:
    """The same losses to four digits, and what was saved is whole."""
    values = _bare(settings, max_steps=12, dtype="float32")
    if method == "lora":
        model = str(learnt.folder / "model")
        values |= {"method": "lora", "from_scratch": False, "model": model, "tokenizer": ""}
    python = deepspeed["HPCTRAIN_DEEPSPEED_PYTHON"]
    how = {"env": deepspeed, "python": python}
    plain = train_two(tmp_path / "ddp", values, **how)
    zero = train_two(tmp_path / "zero", {**values, "zero_stage": stage}, **how)
    assert (plain.code, zero.code) == (0, 0)
    assert "optimizer torch.optim.adamw.AdamW" in plain.log
    built = subprocess.run([python, "-c", COMPILED], capture_output=True, check=False).returncode == 0
    adam = "deepspeed.ops.adam.fused_adam.FusedAdam" if built else "torch.optim.adamw.AdamW"
    assert f"optimizer {adam}" in zero.log
    assert len(plain.losses) == 12
    assert zero.losses == pytest.approx(plain.losses, rel=1e-4)
    assert zero.report["trained"] == plain.report["trained"]
    assert zero.report["parameters"] == plain.report["parameters"]
    again = train_two(tmp_path / "zero", {**values, "zero_stage": stage, "max_steps": 14}, **how)
    assert again.code == 0
    assert "going on after step 12" in again.log


def test_the_earlier_generation_reads_what_this_one_saved(
    learnt: Trained,
    earlier_python: str,
    train: Callable[..., Trained],
    settings: dict[str, Any],
    tmp_path: Path,
) -> None:
    """Weights and tokenizer: it answers as the model did when it was saved, judged by sacrebleu too."""
    values = {
        **settings,
        "from_scratch": False,
        "model": str(learnt.folder / "model"),
        "tokenizer": "",
        "max_steps": 2,
        "warmup_steps": 0,
        "learning_rate": 0.0,
        "generate_eval": "sacrebleu",
    }
    found = train(tmp_path, values, python=earlier_python)
    assert found.code == 0
    for when in ("before", "after"):
        answers = found.report["answers"][when]
        assert answers["exact"] == learnt.report["answers"]["after"]["exact"]
        assert answers["bleu"] > 90
        assert answers["chrf"] > 90
