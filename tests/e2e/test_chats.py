"""Chats that are broken: refused by line before anything is queued or written, by whatever begins a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.product import Product, tree_of

RUN = """
name    = "chats"
cluster = "local"

[resources]
nodes = 1
time  = "5m"

[environment]
use = ""

[assets]
model   = {{ path = "{folder}/model" }}
dataset = {{ path = "{data}" }}

[train]
use = "{trainer}"

[train.trl]
max_steps = 1

[train.automodel.settings]
recipe = {{ _target_ = "nemo_automodel.recipes.llm.train_ft.TrainFinetuneRecipeForNextTokenPrediction" }}
step_scheduler = {{ global_batch_size = 1, local_batch_size = 1, max_steps = 1 }}
model = {{ pretrained_model_name_or_path = "{{assets.model}}" }}
dataset = {{ _target_ = "x.chat_dataset.ChatDataset", path_or_dataset_id = "{{assets.dataset}}" }}
optimizer = {{ _target_ = "torch.optim.AdamW", lr = 1e-5 }}
"""
GOOD = '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}'
TURNED = '{"messages": [{"role": "assistant", "content": "a"}]}'
TEMPLATE = "{% if messages[0].role != 'user' %}{{ raise_exception('who asks?') }}{% endif %}"
BROKEN = {
    "not-messages": ('{"messages": "a"}', 14, "messages is text, a list of messages is needed"),
    "truncated-row": (GOOD[:-3], len(GOOD) - 2, "the line ends inside of its JSON"),
    "chat-no-answer": (GOOD.replace("assistant", "user"), 14, "no message is of the assistant"),
    "chat-refused": (TURNED, 14, "the chat template refuses it: who asks?"),
}


def _written(here: Product, row: str, trainer: str, data: str = "chats.jsonl") -> Path:
    """The user's files; the folder of the model holds what says how chats are written."""
    config = json.dumps({"chat_template": TEMPLATE})
    for name, text in {"tokenizer_config.json": config, "tokenizer.json": "{}"}.items():
        here.write(text, f"model/{name}")
    here.write(RUN.format(folder=here.folder, data=data.format(folder=here.folder), trainer=trainer))
    return here.write(f"{GOOD}\n{row}\n", "chats.jsonl")


@pytest.mark.parametrize("trainer", ["trl", "automodel"])
@pytest.mark.parametrize("code", BROKEN)
def test_a_broken_row_is_named_before_anything_is_written(here: Product, trainer: str, code: str) -> None:
    row, column, message = BROKEN[code]
    path = _written(here, row, trainer)
    before = tree_of(here.home, here.folder)
    for command in ("check", "submit", "eject"):
        (problem,) = [p for p in here.json(command, code=2)["problems"] if p["fatal"]]
        assert problem["code"] == code, command
        assert message in problem["message"]
        span = problem["span"]
        assert (span["file"], span["line"], span["col"]) == (str(path), 2, column)
    assert tree_of(here.home, here.folder) == before


def test_a_place_on_the_cluster_is_read_there(here: Product) -> None:
    _written(here, "{", "trl", "{folder}/chats.jsonl")
    assert "chats.jsonl:2:2" in here("check", code=2).stderr


def test_good_rows_are_no_word(here: Product) -> None:
    _written(here, GOOD, "trl")
    done = here("check")
    assert done.stdout == "local: ok\n"
    assert "chats.jsonl" not in done.stderr


def test_of_many_broken_rows_the_first_are_told_and_the_rest_is_said_to_be_unread(here: Product) -> None:
    path = _written(here, "{}", "trl")
    path.write_text("{}\n" * 50, encoding="utf-8")
    problems = [p for p in here.json("check", code=2)["problems"] if p["fatal"]]
    assert len(problems) == 20
    assert problems[-1]["notes"] == ["rows after this one were not judged"]
    assert "--on-bad" not in here("check", code=2).stderr
