"""show, check of token files, and mix."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from hpctrain_job.exit_codes import CONFIG
from hpctrain_tokens.__main__ import main
from hpctrain_tokens.faults import DataError
from hpctrain_tokens.nanoset import Nanoset
from tests.data import reference
from tests.data.conftest import Make, need
from tests.data.test_chat import CHATS


@pytest.fixture
def prefix(tmp_path: Path, tokenizer: Path) -> Path:
    path = reference.jsonl(tmp_path / "a.jsonl", [{"text": "the quick"}, {"text": "brown fox"}])
    assert (
        main(["prepare", str(path), "--output-prefix", str(tmp_path / "x"), "--tokenizer", str(tokenizer)])
        == 0
    )
    return tmp_path / "x_text_document"


def test_show(prefix: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["show", str(prefix), "--tokenizer", str(tokenizer), "--document", "2", "--ascii"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("2 documents   ")
    assert said[2] == "text  'brown fox<|endoftext|>'"
    assert "#" in said[-1]


def test_show_says_what_is_learnt(
    tmp_path: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need("jinja2")
    path = reference.jsonl(tmp_path / "a.jsonl", [{"messages": CHATS[0]}])
    assert (
        main(["prepare", str(path), "--output-prefix", str(tmp_path / "x"), "--tokenizer", str(tokenizer)])
        == 0
    )
    assert main(["show", f"{tmp_path}/x_messages_document.bin", "--tokenizer", str(tokenizer)]) == 0
    assert r"learnt 'a quick brown one<|im_end|>\n<|endoftext|>'" in capsys.readouterr().out


def test_show_refuses_another_tokenizer(
    prefix: Path, make_tokenizer: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    other = make_tokenizer("other", bos=True)
    assert main(["show", str(prefix), "--tokenizer", str(other)]) == CONFIG
    assert "made with another tokenizer" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["none"], ["x_text_document", "--document", "3"]])
def test_show_of_what_is_not_there(
    prefix: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(prefix.parent / words[0]), *words[1:]]) == CONFIG
    assert capsys.readouterr().err.startswith("error[")


def test_check_of_token_files(prefix: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(prefix), "--model-vocab", "512"]) == 0
    assert "matches its manifest" in capsys.readouterr().out
    assert main(["check", str(prefix), "--model-vocab", "10"]) == CONFIG
    assert "the model's vocabulary is 10" in capsys.readouterr().err
    with Path(f"{prefix}.bin").open("r+b") as file:
        file.write(b"\x01\x00")
    assert main(["check", str(prefix)]) == CONFIG
    assert "does not match its manifest" in capsys.readouterr().err


def sets(folder: Path, *names: str) -> list[str]:
    for name in names:
        reference.write(folder / f"{name}_document", [[1]], 8)
    return [str(folder / f"{name}_document") for name in names]


def mix(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(["mix", *words]) == 0
    return capsys.readouterr().out


@pytest.fixture
def nanoset(tmp_path: Path, tokenizer: Path) -> Path:
    path = reference.jsonl(tmp_path / "n.jsonl", [{"text": "the quick"}, {"text": "brown fox"}])
    words = ["prepare", str(path), "--output-prefix", str(tmp_path / "n"), "--tokenizer", str(tokenizer)]
    assert main([*words, "--compat", "nanotron"]) == 0
    return tmp_path / "n"


@pytest.mark.parametrize("name", ["", "/00000_unshuffled.ds", "/00000_unshuffled.ds.index"])
def test_nanotrons_set_is_shown_and_checked(
    nanoset: Path, tokenizer: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["show", f"{nanoset}{name}", "--tokenizer", str(tokenizer), "--document", "2"]) == 0
    assert "brown fox<|endoftext|>" in capsys.readouterr().out
    assert main(["check", f"{nanoset}{name}", "--model-vocab", "512"]) == 0
    assert "2 documents" in capsys.readouterr().out
    assert main(["check", f"{nanoset}{name}", "--model-vocab", "5"]) == 78


@pytest.mark.parametrize(
    ("end", "cut", "said"),
    [
        ("", b"abc", "the .ds has 1"),
        (".index", b"\xff" * 8, "the index 18446744073709551615"),
        (".index", struct.pack("<2Q", 13, 12), "announces 12 tokens"),
        (".index", b"123", "cut off"),
        (".metadata", b"gpt2|3\n1\n1 T", "not nanotron's metadata"),
        (".metadata", b"", "not nanotron's metadata"),
        (".metadata", None, "with its .index and .metadata"),
    ],
)
def test_a_broken_set_is_refused(nanoset: Path, end: str, cut: bytes | None, said: str) -> None:
    path = nanoset / "00000_unshuffled.ds"
    other = path.with_name(path.name + end)
    other.unlink() if cut is None else other.write_bytes(cut)
    with pytest.raises(DataError) as told:
        Nanoset(path)
    assert told.value.faults[0].code == "data-index"
    assert said in told.value.faults[0].message


def test_mix_for_neox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = sets(tmp_path, "a", "b")
    found = json.loads(mix(capsys, f"{a}=3", f"{b}=1", "--for", "neox"))
    assert found == {"train_data_paths": [a, b], "train_data_weights": [0.75, 0.25]}
    labels = sets(tmp_path, "a_label", "b_label")
    assert json.loads(mix(capsys, f"{a}=3", f"{b}=1", "--for", "neox"))["train_label_data_paths"] == labels


def test_mix_for_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = sets(tmp_path, "a", "b")
    assert mix(capsys, f"{a}=1", f"{b}=1", "--for", "megatron") == f"--data-path 0.5 {a} 0.5 {b}\n"
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    nano = json.loads(mix(capsys, f"{one}=1", f"{two}=3", "--for", "nanotron"))
    assert nano == {"dataset": {"dataset_folder": {str(one): 0.25, str(two): 0.75}}}
    chat = json.loads(mix(capsys, f"{one}=1", f"{two}=1", "--for", "automodel"))
    assert chat == {"dataset": {"path_or_dataset_id": [str(one), str(two)]}}


def test_mix_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = sets(tmp_path, "a", "b")
    sets(tmp_path, "a_label")
    for words in (
        [f"{a}=1", f"{b}=1", "--for", "neox"],  # only one has labels
        [f"{a}=1", f"{a}=1", "--for", "megatron"],
        [f"{a}=0", "--for", "megatron"],
        [f"{a}=nan", "--for", "megatron"],
        [a, "--for", "megatron"],
        [f"{tmp_path}/none=1", "--for", "megatron"],
        [f"{tmp_path}=1", f"{a}.bin=2", "--for", "automodel"],
    ):
        assert main(["mix", *words]) == CONFIG, words
        assert capsys.readouterr().err.startswith("error[")
