"""`hpctrain data`: the same commands with carets, progress, JSON and the exit codes of hpctrain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hpctrain.cli.flags import Flags
from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError, IntegrityError, NotReachable
from hpctrain_plugins.data.command import HPCTRAIN_API, command
from hpctrain_plugins.data.problems import LONGEST, problems
from hpctrain_tokens.faults import Fault
from tests.data import reference
from tests.data.test_chat import ANSWER, TYPO, USER


def data(*words: str, as_json: bool = False) -> Result:
    out = Out.of(Flags(json=as_json), {"COLUMNS": "100"})
    return CliRunner().invoke(command, list(words), obj=out, standalone_mode=False)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return reference.jsonl(tmp_path / "a.jsonl", [{"text": "the quick"}, {"text": "brown fox"}])


def test_the_plugin_speaks_the_api() -> None:
    assert HPCTRAIN_API == 1
    assert command.name == "data"


def test_prepare(text: Path, tokenizer: Path) -> None:
    done = data(
        "prepare", str(text), "--output-prefix", str(text.parent / "x"), "--tokenizer", str(tokenizer)
    )
    assert done.exception is None
    assert done.stdout.splitlines()[0].startswith("2 documents   ")
    assert f"wrote  {text.parent}/x_text_document.bin" in done.stdout
    assert "tokenize" in done.stderr


def test_json(text: Path, tokenizer: Path) -> None:
    words = ["prepare", str(text), "--output-prefix", str(text.parent / "x"), "--tokenizer", str(tokenizer)]
    done = data(*words, as_json=True)
    found = json.loads(done.stdout)
    assert (found["schema"], found["documents"], found["reused"]) == ("hpctrain/data-prepare/1", 2, False)
    assert done.stderr == ""


def test_a_bad_row_is_pointed_at(tmp_path: Path, tokenizer: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n{"text": nope}\n')
    done = data("prepare", str(path), "--output-prefix", str(tmp_path / "x"), "--tokenizer", str(tokenizer))
    assert isinstance(done.exception, ConfigError)
    assert done.exception.exit_code == 2
    span = done.exception.problems[0].span
    assert span is not None
    assert (span.file, span.line, span.column, span.text) == (str(path), 2, 10, '{"text": nope}')


def test_check_looks_as_errors_look(tmp_path: Path) -> None:
    path = reference.jsonl(
        tmp_path / "chat.jsonl", [{"messages": [USER, ANSWER]}, {"messages": [USER, TYPO]}]
    )
    done = data("check", str(path))
    assert done.return_value == 2
    lines = done.stderr.splitlines()
    said = 'role "asistant" is not one of system, developer, user, assistant, tool'
    assert lines[0] == f"error[chat-role]: {said}"
    assert lines[1].startswith("  --> ")
    row = next(number for number, line in enumerate(lines) if line.startswith("2 | "))
    assert lines[row + 1].index("^") == lines[row].index('"asistant"')
    assert lines[row + 1].count("^") == len('"asistant"')
    assert lines[row + 2] == 'help: did you mean "assistant"?'


def test_mistakes_in_the_command_line() -> None:
    for words in (["prepare"], ["nothing"], ["mix", "a=1", "--for", "none"]):
        done = data(*words)
        assert isinstance(done.exception, ConfigError), words
        assert done.exception.problems[0].code == "usage"


def test_help_is_the_commands_own() -> None:
    done = data("prepare", "--help")
    assert done.exit_code == 0
    assert "--output-prefix" in done.output


def test_a_disk_that_is_full(text: Path, tokenizer: Path) -> None:
    done = data("prepare", str(text), "--output-prefix", "/dev/full/x", "--tokenizer", str(tokenizer))
    assert done.exception is not None
    assert getattr(done.exception, "exit_code", 0) == 1


def test_what_is_left_out_is_a_note() -> None:
    found = problems([Fault("a", "one"), Fault("b", "two", file="x.jsonl.gz", line=7)], omitted=1234)
    assert [p.notes for p in found] == [(), ("and 1,234 more",)]
    assert found[1].span is not None
    assert found[1].span.text == ""


def test_a_long_line_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"x" * (LONGEST * 2 + 5) + b"\nsecond\n")
    found = problems([Fault("a", "one", file=str(path), line=n) for n in (1, 2)])
    assert [p.span.text for p in found if p.span] == ["", "second"]


def test_what_is_damaged_is_another_class_than_a_mistake(text: Path, tokenizer: Path) -> None:
    words = ["prepare", str(text), "--output-prefix", str(text.parent / "x"), "--tokenizer", str(tokenizer)]
    assert data(*words).exception is None
    (text.parent / "x_text_document.bin").write_bytes(b"")
    for failed in (data(*words), data("check", str(text.parent / "x_text_document"))):
        assert isinstance(failed.exception, IntegrityError)
    (text.parent / "x_text_document.bin").unlink()
    for failed in (data(*words), data("show", str(text.parent / "x_text_document"))):
        assert isinstance(failed.exception, IntegrityError)


def test_a_hub_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tokenizer: Path) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    done = data("prepare", "some/set:train", "--output-prefix", "x", "--tokenizer", str(tokenizer))
    assert isinstance(done.exception, NotReachable)
    assert done.exception.problems[0].code == "data-hub"


def test_bars_of_plain_letters(text: Path, tokenizer: Path) -> None:
    words = ["count", str(text), "--tokenizer", str(tokenizer)]
    for ascii_only in (True, False):
        out = Out.of(Flags(ascii=ascii_only), {"COLUMNS": "100", "LC_ALL": "C.UTF-8"})
        done = CliRunner().invoke(command, words, obj=out, standalone_mode=False)
        assert ("#" in done.stdout) is ascii_only


def test_what_is_alike_is_told_three_times(tmp_path: Path, tokenizer: Path) -> None:
    path = reference.jsonl(tmp_path / "a.jsonl", [{"text": "a"}, *[{"prose": "b"}] * 50, {"text": 5}])
    done = data("prepare", str(path), "--output-prefix", str(tmp_path / "x"), "--tokenizer", str(tokenizer))
    assert isinstance(done.exception, ConfigError)
    assert [p.code for p in done.exception.problems] == ["row-key"] * 3 + ["not-text"]
    assert done.exception.problems[-1].notes == ("and 47 more",)
    assert done.exception.closing == "nothing was made"


def test_an_end_inside_a_row_is_pointed_at(tmp_path: Path, tokenizer: Path) -> None:
    path = reference.jsonl(tmp_path / "a.jsonl", [{"text": f"{'word ' * 90}a<|endoftext|>b"}])
    done = data("prepare", str(path), "--output-prefix", str(tmp_path / "x"), "--tokenizer", str(tokenizer))
    assert isinstance(done.exception, ConfigError)
    span = done.exception.problems[0].span
    assert span is not None
    assert span.end is not None
    assert span.text[span.column - 1 : span.end - 1] == "<|endoftext|>"
