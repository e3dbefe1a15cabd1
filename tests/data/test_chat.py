"""Tokens and labels of conversations against the fork's way, said again; the check of chat files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from hpctrain_job.exit_codes import CONFIG
from hpctrain_tokens.__main__ import main
from hpctrain_tokens.chat import check, locate
from hpctrain_tokens.chat_template import Template
from hpctrain_tokens.tokenizer import Tokenizer
from tests.data import reference
from tests.data.conftest import Make, need

USER = {"role": "user", "content": "what is a fox?"}
ANSWER = {"role": "assistant", "content": "a quick brown one"}
CHATS = [
    [USER, ANSWER],
    [{"role": "system", "content": "be brief"}, USER, ANSWER, {"role": "user", "content": "why?"}, ANSWER],
]


def by_turns(
    folder: Path, chat: list[dict[str, str]], only_last: bool = False
) -> tuple[list[int], list[int]]:
    """Render each beginning of the conversation; what is new belongs to the last turn of it."""
    tokenizer = Tokenizer.at(str(folder))
    template, engine = Template.of(tokenizer), tokenizer.engine
    tokens: list[int] = []
    label: list[int] = []
    for i, turn in enumerate(chat):
        opens = i < len(chat) - 1 and chat[i + 1]["role"] == "assistant"
        text = template.render(chat[: i + 1], prompt=opens)
        new = engine.encode(text, add_special_tokens=False).ids[len(tokens) :]
        tokens += new
        learnt = turn["role"] == "assistant" and not (only_last and i != len(chat) - 1)
        label += new if learnt else [-100] * len(new)
    return [*tokens, 0], [*label, 0 if label[-1] != -100 else -100]


def run(path: Path, tokenizer: Path, *more: str) -> int:
    need("jinja2")
    out = ["--output-prefix", str(path.parent / "out/x"), "--tokenizer-path", str(tokenizer)]
    return main(["preprocess_data_with_chat_template", "--input", str(path), *out, *more])


def read(folder: Path, name: str) -> list[list[int]]:
    return reference.read(folder / f"out/x_{name}_document")


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    return reference.jsonl(tmp_path / "a.jsonl", [{"messages": c, "score": i} for i, c in enumerate(CHATS)])


@pytest.mark.parametrize("only_last", [False, True])
def test_tokens_and_labels(chats: Path, make_tokenizer: Make, only_last: bool) -> None:
    folder = make_tokenizer("bos", bos=True)  # what the post-processor adds is the template's business
    more = ["--only-last"] if only_last else []
    assert run(chats, folder, "--jsonl-keys", "messages", *more) == 0
    wanted = [by_turns(folder, chat, only_last) for chat in CHATS]
    for name, column in (("messages", 0), ("messages_label", 1)):
        reference.write(chats.parent / "ref", [row[column] for row in wanted], 4)
        assert reference.same(chats.parent / f"out/x_{name}_document", chats.parent / "ref")


def test_labels_cover_the_answer_and_the_end(chats: Path, tokenizer: Path) -> None:
    assert run(chats, tokenizer, "--jsonl-keys", "messages") == 0
    label = [token for token in read(chats.parent, "messages_label")[0] if token != -100]
    said = Tokenizer.at(str(tokenizer)).decode(label)
    assert said == "a quick brown one<|im_end|>\n<|endoftext|>"


def test_without_a_mask(chats: Path, tokenizer: Path) -> None:
    """The original fails here with a KeyError; no label file is what it meant."""
    assert run(chats, tokenizer, "--jsonl-keys", "messages", "--no-mask") == 0
    assert not list((chats.parent / "out").glob("*label*"))
    assert read(chats.parent, "messages") == [by_turns(tokenizer, chat)[0][:-1] for chat in CHATS]


def test_for_a_reward_model(chats: Path, tokenizer: Path) -> None:
    assert run(chats, tokenizer, "--jsonl-keys", "messages", "--for-rm", "--reward-key", "score") == 0
    tokens, label = read(chats.parent, "messages")[0], read(chats.parent, "messages_label")[0]
    assert tokens == [*by_turns(tokenizer, CHATS[0])[0], 0]
    assert label == [-100] * (len(tokens) - 1) + [0]
    assert read(chats.parent, "messages_reward") == [[0], [1]]


def test_a_reward_of_yes_or_no(chats: Path, tokenizer: Path) -> None:
    more = ["--reward-key", "score", "--binary-reward"]
    assert run(chats, tokenizer, "--jsonl-keys", "messages", *more) == 0
    assert read(chats.parent, "messages_reward") == [[-1], [1]]


def test_a_reward_that_cannot_be_stored(
    tmp_path: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = reference.jsonl(tmp_path / "a.jsonl", [{"messages": CHATS[0], "score": 0.5}])
    assert run(path, tokenizer, "--jsonl-keys", "messages", "--reward-key", "score") == CONFIG
    assert "only whole numbers can be stored" in capsys.readouterr().err


FORGETS = (
    "{% for m in messages %}{% if loop.last or m.role == 'user' %}<|im_start|>{{ m.content }}<|im_end|>"
    "{% else %}<|im_start|>(left out)<|im_end|>{% endif %}{% endfor %}"
)


def test_a_template_that_forgets_is_refused(
    tmp_path: Path, make_tokenizer: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such a template, which drops earlier thinking, gave wrong labels silently."""
    folder = make_tokenizer("forgets", chat_template=FORGETS)
    path = reference.jsonl(tmp_path / "a.jsonl", [{"messages": CHATS[0]}, {"messages": CHATS[1]}])
    assert run(path, folder, "--jsonl-keys", "messages") == CONFIG
    said = capsys.readouterr().err
    assert f"--> {path}:2:1  messages[1]" in said
    assert said.startswith("error[chat-template-prefix]")


def test_nothing_to_learn_is_refused(
    tmp_path: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = reference.jsonl(tmp_path / "a.jsonl", [{"messages": [USER]}])
    assert run(path, tokenizer, "--jsonl-keys", "messages") == CONFIG
    assert "error[nothing-learnt]" in capsys.readouterr().err


def test_pairs_become_conversations(tmp_path: Path, tokenizer: Path) -> None:
    need("jinja2")
    path = reference.jsonl(tmp_path / "a.jsonl", [{"nb": USER["content"], "nn": ANSWER["content"]}])
    words = ["prepare", str(path), "--tokenizer", str(tokenizer), "--pair", "nb,nn"]
    assert main([*words, "--output-prefix", str(tmp_path / "x")]) == 0
    assert reference.read(tmp_path / "x_text_document") == [by_turns(tokenizer, CHATS[0])[0]]
    assert main([*words, "--output-prefix", str(tmp_path / "y"), "--to", "chat-jsonl"]) == 0
    assert json.loads((tmp_path / "y.jsonl").read_text()) == {"messages": CHATS[0]}


def put(tmp_path: Path, turns: Any) -> str:
    return str(reference.jsonl(tmp_path / "chat.jsonl", [{"messages": CHATS[0]}, {"messages": turns}]))


TYPO = {"role": "asistant", "content": "a"}
TOOL = {"role": "tool", "content": "7", "tool_call_id": "1"}
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
PART = {"role": "user", "content": [{"type": "x"}]}
SYSTEM = {"role": "system", "content": "a"}
HALF = {"role": "assistant", "content": "\ud800"}
BROKEN = {
    "role": ([USER, TYPO], "chat-role", '"asistant"', "messages[1].role"),
    "no role": ([USER, {"content": "a"}], "chat-role", '{"content"', "messages[1]"),
    "empty": ([USER, {"role": "assistant", "content": " "}], "chat-empty", '" "', "messages[1].content"),
    "no content": ([USER, {"role": "assistant"}], "chat-content", '{"role": "assistant"}', "messages[1]"),
    "null": ([USER, {"role": "assistant", "content": None}], "chat-content", "null", "messages[1].content"),
    "number": ([{"role": "user", "content": 5}, ANSWER], "chat-content", "5", "messages[0].content"),
    "part": ([PART, ANSWER], "chat-content", '{"type"', "messages[0].content[0]"),
    "user twice": ([USER, USER, ANSWER], "chat-order", '"user"', "messages[1].role"),
    "answer twice": ([USER, ANSWER, ANSWER], "chat-order", '"assistant"', "messages[2].role"),
    "answer first": ([ANSWER], "chat-order", '"assistant"', "messages[0].role"),
    "late system": ([USER, ANSWER, SYSTEM, USER, ANSWER], "chat-order", '"system"', "messages[2].role"),
    "tool without call": ([USER, TOOL, ANSWER], "chat-order", '"tool"', "messages[1].role"),
    "ends with user": ([USER, ANSWER, USER], "chat-end", '"user"', "messages[2].role"),
    "no answer": ([USER], "chat-no-answer", "[{", "messages"),
    "no messages": ([], "chat-empty", "[]", "messages"),
    "no list": ("hello", "not-messages", '"hello"', "messages"),
    "text in the list": ([USER, "hello"], "not-messages", '"hello"', "messages[1]"),
    "surrogate": ([USER, HALF], "surrogate", '"\\ud800"', "messages[1].content"),
}  # fmt: skip


@pytest.mark.parametrize(("turns", "code", "at", "where"), BROKEN.values(), ids=BROKEN)
def test_the_check_points_at_the_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], turns: Any, code: str, at: str, where: str
) -> None:
    path = put(tmp_path, turns)
    assert main(["check", path]) == CONFIG
    said = capsys.readouterr()
    assert f"error[{code}]: " in said.err
    place = next(line for line in said.err.splitlines() if line.endswith(f"  {where}"))
    column = int(place.split()[1].rsplit(":", 1)[1])
    assert place.split()[1] == f"{path}:2:{column}"
    assert Path(path).read_text().splitlines()[1][column - 1 :].startswith(at)
    assert said.out == "2 rows: 1 good, 1 bad (at most 20 are shown)\n"


def test_what_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = {
        "role": "user",
        "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}],
    }
    right = [
        [USER, CALL, TOOL, TOOL, ANSWER],
        [parts, ANSWER],
        [{"role": "developer", "content": "a"}, USER, ANSWER],
    ]
    path = reference.jsonl(tmp_path / "a.jsonl", [{"messages": turns} for turns in right])
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == "3 rows: 3 good, 0 bad\n"


def test_every_fault_of_a_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"messages": [USER, TYPO]},
        {"messages": [USER, ANSWER]},
        {"messages": [{"role": "user", "content": ""}, TYPO]},
    ]
    path = reference.jsonl(tmp_path / "a.jsonl", rows)
    assert main(["check", str(path)]) == CONFIG
    said = capsys.readouterr()
    assert said.err.count("error[") == 3
    assert 'did you mean "assistant"?' in said.err
    assert said.out == "3 rows: 1 good, 2 bad (at most 20 are shown)\n"


def test_a_long_row_of_a_packed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "LONGEST", 1000)
    good = json.dumps({"messages": [USER, ANSWER]})
    long = json.dumps({"messages": [USER, {**ANSWER, "content": "x" * 1000}]})
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(f"{good}\n{long}\n{good}\n{long}".encode()))
    assert main(["check", str(path)]) == CONFIG
    said = capsys.readouterr()
    assert [line for line in (2, 4) if f"--> {path}:{line}:1" in said.err] == [2, 4]
    assert said.out.startswith("4 rows: 2 good, 2 bad")


def test_chat_jsonl_leaves_bad_rows_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = reference.jsonl(tmp_path / "a.jsonl", [{"messages": CHATS[0]}, {"messages": [TYPO]}])
    words = ["prepare", str(path), "--output-prefix", str(tmp_path / "y.jsonl"), "--to", "chat-jsonl"]
    assert main(words) == CONFIG
    assert "error[chat-role]" in capsys.readouterr().err
    assert not (tmp_path / "y.jsonl").exists()
    assert main([*words, "--skip-bad"]) == 0
    assert (tmp_path / "y.jsonl").read_text() == json.dumps({"messages": CHATS[0]}) + "\n"


@pytest.mark.parametrize(
    ("text", "path", "found"),
    [
        ('{"a": 1, "b": [1, {"c": "x"}]}', ("b", 1, "c"), '"x"'),
        ('  { "a" : "}" , "b" : null }', ("b",), "null"),
        ('{"a\\"b": true}', ('a"b',), "true"),
        ('{"a": []}', ("a", 3), "[]"),
    ],
)
def test_a_value_is_found_in_its_line(text: str, path: tuple[str, ...], found: str) -> None:
    column, end = locate.span(text, path)
    assert text[column - 1 : end - 1] == found
