"""The trainer, really training: a small model on one core."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpctrain_job import keeping, metrics, resume
from hpctrain_job.arithmetic.model_shape import Shape
from hpctrain_trl.settings import CHECKPOINT, CHECKPOINT_LAST
from tests.trainers.conftest import LIMIT, SHAPE, Trained, wait_for_step

pytestmark = pytest.mark.torch


def test_it_learns(learnt: Trained) -> None:
    assert learnt.code == 0
    assert learnt.losses[0] > 5
    assert learnt.losses[-1] < 0.5
    answers = learnt.report["answers"]
    assert answers["before"]["exact"] == 0
    assert answers["after"]["exact"] >= 0.9
    assert answers["after"]["of"] == 200


def test_no_held_out_sentence_was_seen(demo: Path) -> None:
    train, held_out = (
        set((demo / f"{name}.jsonl").read_text().splitlines()) for name in ("train", "heldout")
    )
    assert (len(train), len(held_out), len(train & held_out)) == (4096, 200, 0)
    sources = {json.loads(line)["nb"] for line in train}
    assert not sources & {json.loads(line)["nb"] for line in held_out}


def test_metrics_are_the_trainers_own(learnt: Trained) -> None:
    state = json.loads((learnt.folder / "checkpoints/checkpoint-100/trainer_state.json").read_text())
    logged = [row for row in state["log_history"] if "loss" in row]
    rows = [row for row in learnt.rows if "loss" in row]
    assert [set(row) for row in rows] == [set(metrics.COLUMNS)] * len(rows)
    assert [(r["step"], r["loss"], r["lr"], r["grad_norm"]) for r in rows] == [
        (r["step"], r["loss"], r["learning_rate"], r["grad_norm"]) for r in logged
    ]
    assert rows[-1]["tokens"] == state["num_input_tokens_seen"]
    assert all(row["mfu"] is None for row in rows)
    assert [row["eval_loss"] for row in learnt.rows if "eval_loss" in row] == [
        row["eval_loss"] for row in state["log_history"] if "eval_loss" in row
    ]


def test_the_plan_counts_what_the_model_has(learnt: Trained) -> None:
    shape = Shape.of(SHAPE)
    assert shape is not None
    assert learnt.report["parameters"] == learnt.report["trained"] == shape.parameters
    assert learnt.report["flops_per_token"] == shape.flops_per_token(96)


def test_with_learning_rate_zero_it_does_not_learn(
    train: Callable[..., Trained], settings: dict[str, Any], tmp_path: Path
) -> None:
    still = train(tmp_path / "run", {**settings, "learning_rate": 0.0, "max_steps": 20})
    assert still.code == 0
    assert still.losses[-1] > 5
    assert still.report["answers"]["after"]["exact"] == 0


def test_a_signal_saves_and_the_next_attempt_ends_as_if_undisturbed(
    start: Callable[..., subprocess.Popen[str]],
    train: Callable[..., Trained],
    settings: dict[str, Any],
    tmp_path: Path,
) -> None:
    values = {**settings, "max_steps": 40, "logging_steps": 1, "generate_eval": "", "eval_dataset": ""}
    whole = train(tmp_path / "whole", values)
    folder = tmp_path / "parts"
    process = start(folder, values)
    wait_for_step(folder, 8, process)
    process.send_signal(signal.SIGUSR1)
    log, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 75, log
    first = Trained(folder, 75, log)
    saved = first.rows[-1]["step"]
    assert 8 <= saved < 40
    assert first.report["end"] == {"code": 75, "step": saved, "signal": "SIGUSR1"}
    checkpoint = folder / f"checkpoints/checkpoint-{saved}"
    assert (checkpoint / resume.MANIFEST).is_file()
    assert resume.damage(checkpoint) == ""

    again = train(folder, values)
    assert again.code == 0
    assert f"going on after step {saved}" in again.log
    same = ("step", "loss", "lr", "grad_norm", "tokens")
    one, two = (
        [{key: row[key] for key in same} for row in metrics.newest(run.rows)] for run in (whole, again)
    )
    assert one == two


def test_a_damaged_newest_checkpoint_is_passed_over(
    learnt: Trained, train: Callable[..., Trained], settings: dict[str, Any], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    old = learnt.folder / "checkpoints/checkpoint-100"
    shutil.copytree(old, folder / "checkpoints/checkpoint-100")
    bad = folder / "checkpoints/checkpoint-200"
    shutil.copytree(old, bad)
    weights = bad / "model.safetensors"
    weights.write_bytes(bytes(weights.stat().st_size))
    values = {**settings, "max_steps": 101, "generate_eval": "", "eval_dataset": ""}
    found = train(folder, values)
    assert found.code == 0
    assert "model.safetensors is not what was written" in found.log
    assert "going on after step 100" in found.log


def test_old_checkpoints_go_and_the_last_good_one_stays(
    train: Callable[..., Trained], settings: dict[str, Any], tmp_path: Path
) -> None:
    quick = {**settings, "generate_eval": "", "eval_dataset": "", "save_steps": 5, "save_total_limit": 1}
    folder = tmp_path / "run/checkpoints"
    assert train(tmp_path / "run", {**quick, "max_steps": 15}).code == 0
    assert [path.name for path in folder.glob("checkpoint-*")] == ["checkpoint-15"]
    (folder / "checkpoint-15" / "model.safetensors").write_bytes(b"cut")
    (folder / "checkpoint-15").rename(folder / "checkpoint-25")
    shutil.copytree(folder / "checkpoint-25", folder / "checkpoint-10")
    resume.write_manifest(folder / "checkpoint-10")
    keeping.retain(keeping.Saves(folder, CHECKPOINT, CHECKPOINT_LAST), 1)
    assert {path.name for path in folder.glob("checkpoint-*")} == {"checkpoint-10", "checkpoint-25"}


def test_lora_trains_the_adapters_only(
    learnt: Trained, train: Callable[..., Trained], settings: dict[str, Any], tmp_path: Path
) -> None:
    values = {
        **settings,
        "method": "lora",
        "from_scratch": False,
        "model": str(learnt.folder / "model"),
        "tokenizer": "",
        "max_steps": 10,
        "warmup_steps": 0,
        "lora_r": 8,
        "learning_rate": 1e-4,
    }
    adapted = train(tmp_path / "run", values)
    assert adapted.code == 0
    shape = Shape.of(SHAPE)
    assert shape is not None
    assert adapted.report["trained"] == shape.adapters(8)
    assert adapted.report["parameters"] == shape.parameters + adapted.report["trained"]
    assert adapted.report["answers"]["before"] == learnt.report["answers"]["after"]
    assert adapted.losses[0] < 0.5
    assert (tmp_path / "run/model/adapter_model.safetensors").is_file()
