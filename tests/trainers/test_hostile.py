"""Bad data, models and folders: exit code 78, one sentence, and nothing trained."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.trainers.conftest import LIMIT, SHAPE, Trained, surroundings

pytestmark = pytest.mark.torch

Outcomes = dict[str, dict[str, Any]]
SAVED = ("rows.parquet", "rows.arrow", "disk", "disk:train")
"""Forms in which the datasets library writes rows."""
SAVE = """
import json, sys, datasets
at = sys.argv[1]
rows = datasets.Dataset.from_list([json.loads(line) for line in open(at + "/pairs.jsonl")])
rows.to_parquet(at + "/rows.parquet")
with datasets.arrow_writer.ArrowWriter(path=at + "/rows.arrow") as writer:
    for row in rows:
        writer.write(row)
    writer.finalize()
datasets.DatasetDict(train=rows).save_to_disk(at + "/disk")
"""


def _lines(path: Path, *rows: object) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def _tokenizer(folder: Path, demo: Path, **changes: Any) -> str:
    """The demo's tokenizer with other words in its configuration; None removes one."""
    folder.mkdir()
    shutil.copy(demo / "tokenizer.json", folder)
    said = {**json.loads((demo / "tokenizer_config.json").read_text()), **changes}
    kept = {key: value for key, value in said.items() if value is not None}
    (folder / "tokenizer_config.json").write_text(json.dumps(kept))
    return str(folder)


def _bad(base: dict[str, Any], demo: Path, learnt: Trained, at: Path) -> dict[str, tuple[Any, str]]:
    """Settings and a piece of the sentence they must get."""
    pairs = {"nb": "Jeg ser.", "nn": "Eg ser."}
    bare = {**base, "train_source_field": "", "train_target_field": ""}
    checkpoint = learnt.folder / "checkpoints/checkpoint-100"
    chat = _lines(at / "chat.jsonl", {"messages": [{"role": "user", "content": "Hei"}]})
    (at / "rubbish.jsonl").write_text('{"nb": "a", \n')
    (at / "odd.xyz").write_text("x")
    (at / "empty.jsonl").write_text("")
    lone = at / "checkpoint-7"
    shutil.copytree(checkpoint, lone)
    (lone / "optimizer.pt").write_bytes((lone / "optimizer.pt").read_bytes()[:100])
    sharded = at / "checkpoint-8"
    shutil.copytree(checkpoint, sharded)
    (sharded / "global_step8").mkdir()
    for rank in range(4):
        (sharded / f"global_step8/zero_pp_rank_{rank}_mp_rank_00_optim_states.pt").touch()
    return {
        "field": ({**base, "train_target_field": "nynorsk"}, "no field nynorsk"),
        "no-text": (bare, "has no field text"),
        "missing": ({**base, "train_dataset": str(at / "none.jsonl")}, "cannot be read"),
        "hub": ({**base, "train_dataset": "org/name:train"}, "cannot be read"),
        "empty": ({**base, "train_dataset": str(at / "empty.jsonl")}, "empty.jsonl"),
        "rubbish": ({**base, "train_dataset": str(at / "rubbish.jsonl")}, "cannot be read"),
        "kind": ({**base, "train_dataset": str(at / "odd.xyz")}, "of a kind that is not known"),
        "split": ({**base, "train_dataset": base["train_dataset"] + ":test"}, "test"),
        "number": (
            {**base, "train_dataset": _lines(at / "number.jsonl", {"nb": 1, "nn": "x"})},
            "holds int64, not text",
        ),
        "null": (
            {**base, "train_dataset": _lines(at / "null.jsonl", pairs, {"nb": None, "nn": "x"})},
            "is empty in row 2",
        ),
        "template": (
            {
                **bare,
                "train_dataset": chat,
                "tokenizer": _tokenizer(at / "plain", demo, chat_template=None),
            },
            "no chat template",
        ),
        "pad": (
            {**base, "tokenizer": _tokenizer(at / "nopad", demo, pad_token=None, eos_token=None)},
            "no pad and no end token",
        ),
        "no-tokenizer": ({**base, "tokenizer": str(at)}, "no tokenizer in"),
        "no-model": ({**base, "from_scratch": False, "config": {}, "model": str(at)}, "cannot be loaded"),
        "model-type": ({**base, "config": {"hidden_size": 8}}, "config needs model_type"),
        "vocabulary": ({**base, "config": {**SHAPE, "vocab_size": 300}}, "383 tokens, the model only 300"),
        "other-shape": (
            {
                **base,
                "from_scratch": False,
                "model": str(learnt.folder / "model"),
                "config": {**SHAPE, "hidden_size": 64},
            },
            "config.hidden_size is 64, the model has 128",
        ),
        "resume-missing": (
            {**base, "resume": str(at / "checkpoint-3")},
            "is not a complete checkpoint and contains none",
        ),
        "resume-other": (
            {**base, "resume": str(checkpoint), "config": {**SHAPE, "num_hidden_layers": 2}},
            "of another model: its num_hidden_layers is 4, not 2",
        ),
        "resume-damaged": ({**base, "resume": str(lone)}, "optimizer.pt has 100 bytes"),
        "resume-world": ({**base, "resume": str(sharded)}, "saved by 4 ranks, and ZeRO cannot go on with 1"),
        "warm-up": (
            {**base, "max_steps": 0, "num_train_epochs": 1, "warmup_steps": 129},
            "warmup_steps is 129, and 4096 rows make 128 steps",
        ),
        "wandb": ({**base, "wandb_project": "olivia_test"}, "wandb is not installed"),
        "deepspeed": ({**base, "zero_stage": 2}, "deepspeed is not installed"),
        "sacrebleu": (
            {**base, "generate_eval": "sacrebleu", "eval_dataset": base["train_dataset"]},
            "sacrebleu is not installed",
        ),
        "generate": (
            {
                **bare,
                "train_dataset": _lines(at / "text.jsonl", {"text": "Eg ser."}),
                "eval_dataset": str(at / "text.jsonl"),
                "generate_eval": "exact",
            },
            "needs a prompt and an answer",
        ),
    }


def _good(base: dict[str, Any], demo: Path, at: Path) -> dict[str, dict[str, Any]]:
    """Each form of data, two steps of it."""
    rows = [json.loads(line) for line in (demo / "train.jsonl").read_text().splitlines()[:64]]
    bare = {**base, "train_source_field": "", "train_target_field": ""}
    pairs = _lines(at / "pairs.jsonl", *rows)
    turns = [
        {
            "messages": [
                {"role": "user", "content": r["nb"]},
                {"role": "assistant", "content": r["nn"]},
            ]
        }
        for r in rows
    ]
    plain = _tokenizer(at / "lines", demo, chat_template=None)
    text = _lines(at / "texts.jsonl", *({"body": r["nn"]} for r in rows))
    (at / "rows.csv").write_text("nb,nn\n" + "".join(f'"{r["nb"]}","{r["nn"]}"\n' for r in rows))
    return {
        "messages": {**bare, "train_dataset": _lines(at / "turns.jsonl", *turns)},
        "lines": {**base, "tokenizer": plain},
        "text": {**bare, "train_dataset": text, "text_field": "body"},
        "pretrain": {**bare, "method": "pretrain", "train_dataset": text, "text_field": "body"},
        "csv": {**base, "train_dataset": str(at / "rows.csv")},
        **{kind: {**base, "train_dataset": str(at / kind), "eval_dataset": pairs} for kind in SAVED},
        "prompt": {
            **bare,
            "train_dataset": _lines(
                at / "pc.jsonl", *({"prompt": r["nb"], "completion": r["nn"]} for r in rows)
            ),
        },
        "epochs": {
            **base,
            "max_steps": 0,
            "num_train_epochs": 1,
            "train_dataset": _lines(at / "few.jsonl", *rows),
        },
    }


def _failing(base: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What goes wrong while it runs, and not by a mistake in the settings."""
    return {
        "memory": {**base, "config": {**SHAPE, "hidden_size": 1 << 16, "vocab_size": 1 << 31}},
        "diverged": {**base, "learning_rate": 1e30, "max_grad_norm": 0.0, "max_steps": 20},
    }


@pytest.fixture(scope="module")
def base(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        **settings,
        "max_steps": 2,
        "warmup_steps": 0,
        "logging_steps": 1,
        "eval_dataset": "",
        "generate_eval": "",
    }


@pytest.fixture(scope="module")
def expected(
    base: dict[str, Any], demo: Path, learnt: Trained, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Any, str]]:
    return _bad(base, demo, learnt, tmp_path_factory.mktemp("bad"))


@pytest.fixture(scope="module")
def outcomes(
    base: dict[str, Any],
    demo: Path,
    expected: dict[str, tuple[Any, str]],
    torch_python: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Outcomes:
    at = tmp_path_factory.mktemp("cases")
    made = tmp_path_factory.mktemp("good")
    good = _good(base, demo, made)
    subprocess.run([torch_python, "-c", SAVE, str(made)], check=True, timeout=LIMIT, capture_output=True)
    cases = {**{name: values for name, (values, _) in expected.items()}, **good, **_failing(base)}
    (at / "cases.json").write_text(json.dumps(cases))
    env = surroundings(at)
    del env["HPC_CHECKPOINTS"]
    done = subprocess.run(
        [torch_python, str(Path(__file__).with_name("hostile.py")), str(at / "cases.json")],
        env=env,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    found: Outcomes = json.loads(done.stdout.splitlines()[-1])
    return found


def test_each_mistake_gets_its_sentence(outcomes: Outcomes, expected: dict[str, tuple[Any, str]]) -> None:
    wrong = {
        name: outcomes[name]
        for name, (_, says) in expected.items()
        if outcomes[name]["code"] != 78 or says not in outcomes[name]["log"] or outcomes[name]["trained"]
    }
    assert not wrong, json.dumps(wrong, indent=1)


@pytest.mark.parametrize("form", ["messages", "lines", "text", "pretrain", "csv", "prompt", "epochs", *SAVED])
def test_each_form_of_data_trains(outcomes: Outcomes, form: str) -> None:
    assert outcomes[form]["code"] == 0, outcomes[form]["log"]
    assert outcomes[form]["trained"]
    assert "step 2/2" in outcomes[form]["log"]


def test_too_little_memory_has_its_own_code(outcomes: Outcomes) -> None:
    assert outcomes["memory"]["code"] == 70
    assert "per_device_train_batch_size smaller" in outcomes["memory"]["log"]


def test_a_loss_that_is_no_number_ends_the_run(outcomes: Outcomes) -> None:
    found = outcomes["diverged"]
    assert found["code"] == 65
    assert "error[diverged]: the loss is nan in 3 rows" in found["log"]
    assert "step 20/20" not in found["log"]


def test_a_port_that_is_taken_has_its_own_code(
    start: Callable[..., subprocess.Popen[str]], base: dict[str, Any], tmp_path: Path
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        world = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
        port = str(taken.getsockname()[1])
        process = start(tmp_path, base, env={**world, "MASTER_PORT": port})
        log, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 69, log
    assert f"error[port]: another process listens on MASTER_PORT {port}" in log
    assert not (tmp_path / "metrics.jsonl").exists()


def test_deepspeed_without_a_compiler(
    start: Callable[..., subprocess.Popen[str]],
    deepspeed: dict[str, str],
    base: dict[str, Any],
    tmp_path: Path,
) -> None:
    python = deepspeed["HPCTRAIN_DEEPSPEED_PYTHON"]
    process = start(tmp_path, {**base, "zero_stage": 2}, env={"CXX": "no-such-c++"}, python=python)
    log, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 78, log
    assert "there is no compiler no-such-c++ on this node" in log
