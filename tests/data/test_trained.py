"""Rows as trainers read them: the real ChatDataset of NeMo Automodel says the same of each kind of row."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hpctrain_plugins.trainers import chats
from hpctrain_tokens.chat import trained
from hpctrain_tokens.chat.trained import Reader, judge
from hpctrain_tokens.faults import DataError
from hpctrain_tokens.fields import Fields
from hpctrain_tokens.pieces import SIZE
from tests.conftest import needs
from tests.data.conftest import Make

READER = Reader(Fields("messages", ("messages",)))
STRICT = (
    "{% for m in messages %}"
    "{% if loop.first and m['role'] != 'user' %}{{ raise_exception('the first is a user') }}{% endif %}"
    "<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
)


def chat(*turns: tuple[str, Any], **more: Any) -> str:
    return json.dumps({"messages": [{"role": role, "content": text} for role, text in turns], **more})


GOOD = chat(("user", "How?"), ("assistant", "So."))


def written(folder: Path, *lines: str) -> Path:
    path = folder / "chats.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def of_automodel(template: Any = None) -> Reader:
    """As the trainer's plugin makes it."""
    roles = ("system", "user", "assistant", "tool")
    return Reader(READER.fields, roles, instead="conversations", separates=True, template=template)


CASES = {
    "good": (GOOD, ""),
    "a list of parts": (chat(("user", [{"type": "text", "text": "How?"}]), ("assistant", "So.")), ""),
    "user after user": (chat(("user", "a"), ("user", "b"), ("assistant", "c")), ""),
    "the last is a user": (chat(("user", "a"), ("assistant", "b"), ("user", "c")), ""),
    "other layout": (
        '{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}',
        "",
    ),
    "no JSON": ("messages", "not-json"),
    "cut": (GOOD[:-5], "truncated-row"),
    "no object": ("[]", "not-object"),
    "no messages": ('{"text": "a"}', "row-key"),
    "messages are text": ('{"messages": "a"}', "not-messages"),
    "an empty list": ('{"messages": []}', "chat-empty"),
    "no role": ('{"messages": [{"content": "a"}, {"role": "assistant", "content": "b"}]}', "chat-role"),
    "another role": (chat(("human", "a"), ("assistant", "b")), "chat-role"),
    "a role of others": (chat(("developer", "a"), ("user", "b"), ("assistant", "c")), "chat-role"),
    "no answer": (chat(("user", "a")), "chat-no-answer"),
    "a separator": (GOOD.replace("How?", "a\u2028b"), "line-separator"),
}
"""A row, and the fault that is refused; nothing where the trainer goes on."""


@pytest.mark.parametrize("case", CASES)
def test_what_is_refused_and_what_goes_on(case: str, tmp_path: Path) -> None:
    row, code = CASES[case]
    judgement = judge(written(tmp_path, GOOD, row), of_automodel())
    assert {fault.code for fault in judgement.refused} == ({code} if code else set())
    assert {fault.line for fault in judgement.refused} <= {2}


ASK = """
import json
import sys
import types
from pathlib import Path

import datasets
from transformers import PreTrainedTokenizerFast

# A stand-in: Automodel's package imports readers of images, for which nobody asks here.
sys.modules["PIL"] = types.ModuleType("PIL")
sys.modules["PIL"].Image = None
from nemo_automodel.components.datasets.llm.chat_dataset import ChatDataset

tokenizer = PreTrainedTokenizerFast.from_pretrained(sys.argv[1])
said = {}
for path in sorted(Path(sys.argv[2]).glob("*.jsonl")):
    try:
        rows = ChatDataset(str(path), tokenizer)
        labels = [rows[number]["labels"] for number in range(len(rows))]
        said[path.stem] = "" if all(any(i != -100 for i in row) for row in labels) else "nothing is learnt"
    except Exception as error:
        said[path.stem] = f"{type(error).__name__}: {error}"
print(json.dumps(said))
"""


@pytest.mark.torch
def test_automodel_says_the_same(make_tokenizer: Make, tmp_path: Path) -> None:
    python = os.environ.get("HPCTRAIN_AUTOMODEL_PYTHON", "")
    needs("torch", bool(python), "HPCTRAIN_AUTOMODEL_PYTHON names no interpreter with NeMo Automodel")
    names = {f"{number:02}": case for number, case in enumerate(CASES)}
    for name, case in names.items():
        (tmp_path / f"{name}.jsonl").write_text(f"{CASES[case][0]}\n", encoding="utf-8")
    asked = subprocess.run(
        [python, "-c", ASK, str(make_tokenizer("asked")), str(tmp_path)],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert asked.returncode == 0, asked.stderr
    said = json.loads(asked.stdout.splitlines()[-1])
    refused = {case for name, case in names.items() if said[name]}
    assert refused == {case for case, (_, code) in CASES.items() if code}, said


def test_a_template_that_refuses_a_row_says_why(make_tokenizer: Make, tmp_path: Path) -> None:
    template, faults = chats.template_of(make_tokenizer("strict", chat_template=STRICT))
    assert faults == ()
    path = written(tmp_path, GOOD, chat(("assistant", "a"), ("user", "b"), ("assistant", "c")))
    (fault,) = judge(path, of_automodel(template)).refused
    assert (fault.code, fault.line, fault.where) == ("chat-refused", 2, "messages")
    assert fault.message == "the chat template refuses it: the first is a user"


def test_a_template_that_we_cannot_render_refuses_nothing(make_tokenizer: Make, tmp_path: Path) -> None:
    template, _ = chats.template_of(make_tokenizer("dated", chat_template="{{ strftime_now('%Y') }}"))
    assert judge(written(tmp_path, GOOD), of_automodel(template)).refused == []


def test_a_model_without_a_template_is_named(make_tokenizer: Make) -> None:
    folder = make_tokenizer("bare", chat_template="")
    template, (problem,) = chats.template_of(folder)
    assert (template, problem.code, problem.fatal) == (None, "no-template", True)
    assert chats.template_of(folder, STRICT)[0] is not None
    assert chats.template_of(folder / "nowhere") == (None, ())


def test_a_file_of_gigabytes_is_read_in_places_up_to_its_end(tmp_path: Path) -> None:
    line = chat(("user", "How?" * 5000), ("assistant", "So." * 5000))
    rows = 8 * SIZE // len(line)
    path = written(tmp_path, *[line] * rows, GOOD[:-5])
    told: list[tuple[str, int, int]] = []
    judgement = judge(path, READER, most=4 * SIZE, tell=lambda *news: told.append(news))
    (fault,) = judgement.refused
    assert (fault.code, fault.line) == ("truncated-row", rows + 1)
    assert judgement.read <= 4 * SIZE < judgement.size
    assert [title for title, _, _ in told] == ["chats.jsonl"] * 4
    assert told[-1][1] == told[-1][2] == judgement.read


def test_what_was_not_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, *[chat(("user", "How?" * 5000), ("assistant", "So."))] * (2 * SIZE // 20000))
    monkeypatch.setattr(trained.judge, "__kwdefaults__", {"most": SIZE, "tell": None})
    (problem,) = chats.problems(path, READER, lambda *_: None)
    assert (problem.code, problem.fatal) == ("data-sampled", False)
    assert "of which 8.4 MB were read" in problem.message


def test_reading_ends_when_enough_is_wrong(tmp_path: Path) -> None:
    judgement = judge(written(tmp_path, *["{"] * 1000), READER)
    assert len(judgement.refused) == 20
    assert judgement.rows == 20


def test_faults_with_which_it_goes_on_are_told_once(tmp_path: Path) -> None:
    odd = chat(("user", "a"), ("user", "b"), ("assistant", "c"))
    (problem,) = chats.problems(written(tmp_path, GOOD, odd, odd, odd), READER, lambda *_: None)
    assert (problem.code, problem.fatal, problem.notes) == (
        "chat-order",
        False,
        ("and 2 rows more of this kind",),
    )
    assert problem.span is not None
    assert (problem.span.line, problem.span.column) == (2, 58)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there are no rows"):
        judge(written(tmp_path), READER)


def test_texts_and_pairs_are_text_in_every_row(tmp_path: Path) -> None:
    path = written(tmp_path, '{"nb": "a", "nn": "b"}', '{"nb": "a", "nn": null}', '{"nb": "a"}')
    faults = judge(path, Reader(Fields("pair", ("nb", "nn")))).refused
    assert [(fault.code, fault.line, fault.column) for fault in faults] == [
        ("not-text", 2, 19),
        ("row-key", 3, 1),
    ]
    assert [fault.line for fault in judge(path, Reader(Fields("text", ("nn",)))).refused] == [2, 3]
