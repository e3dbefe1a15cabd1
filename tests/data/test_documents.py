"""The documents' own commands: their options, defaults and names of files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hpctrain_job.exit_codes import CONFIG
from hpctrain_tokens.__main__ import main
from hpctrain_tokens.commands.pipeline import folder_name
from tests.data import reference
from tests.data.conftest import need
from tests.data.test_chat import CHATS

RENDERED = "<|im_start|>user\nwhat is a fox?<|im_end|>\n<|im_start|>assistant\na quick brown one<|im_end|>\n"
TEXTS = ["one row", "another <|endoftext|> row", "the last"]


@pytest.mark.parametrize(
    ("dataset", "subset", "split", "name"),
    [
        ("cais/wmdp-corpora", "bio-retain-corpus", "train", "wmdp-corpora_bio-retain-corpus_train"),
        ("cais/wmdp-corpora", "", "test", "wmdp-corpora_test"),
        ("plain", "", "train", "plain_train"),
    ],
)
def test_the_name_of_the_folder(dataset: str, subset: str, split: str, name: str) -> None:
    assert folder_name(dataset, subset, split) == name


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "wmdp-corpora"
    (folder / "bio").mkdir(parents=True)
    reference.jsonl(folder / "bio/train.jsonl", [{"text": t, "title": "x"} for t in TEXTS])
    reference.jsonl(folder / "bio/test.jsonl", [{"text": "other"}])
    return folder


def pipeline(dataset: Path, tokenizer: Path, *more: str) -> int:
    words = ["prepare_hf_dataset", "--dataset", str(dataset), "--output-base", str(dataset.parent / "data")]
    return main([*words, "--hf-tokenizer", str(tokenizer), *more])


def results(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "pipeline_results.json").read_text())
    return found


def test_the_pipeline(dataset: Path, tokenizer: Path) -> None:
    vocab = ["--vocab-file", str(tokenizer / "tokenizer.json")]
    assert pipeline(dataset, tokenizer, "--subset", "bio", *vocab, "--num-proc", "2") == 0
    folder = dataset.parent / "data/wmdp-corpora_bio_train"
    prefix = folder / "wmdp-corpora_bio_train_text_document"
    rows = (folder / "dataset.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in rows] == [{"text": t} for t in TEXTS]
    wanted = reference.tokens(tokenizer, TEXTS)
    reference.write(dataset.parent / "ref", wanted, 8)
    assert reference.same(prefix, dataset.parent / "ref")
    said = results(folder)
    assert (said["num_documents"], said["token_count"]) == (3, sum(map(len, wanted)) - 3)
    assert (said["status"], said["text_column"], said["is_messages"]) == ("success", "text", False)
    assert (said["bin_path"], said["tokenized"]) == (f"{prefix}.bin", True)
    names = {
        "dataset.jsonl",
        "pipeline_results.json",
        *(f"{prefix.name}{e}" for e in (".bin", ".idx", ".manifest.json")),
    }
    assert {p.name for p in folder.iterdir()} == names


def test_count_only(dataset: Path, tokenizer: Path) -> None:
    assert pipeline(dataset, tokenizer, "--subset", "bio", "--count-only") == 0
    folder = dataset.parent / "data/wmdp-corpora_bio_train"
    assert [p.name for p in folder.iterdir()] == ["pipeline_results.json"]
    said = results(folder)
    assert (said["token_count"], said["tokenized"], said["jsonl_path"]) == (
        sum(map(len, reference.tokens(tokenizer, TEXTS))) - 3,
        False,
        None,
    )


def test_skip_count_and_skip_tokenize(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    more = ["--skip-count", "--skip-tokenize", "--output-dir", str(out)]
    assert pipeline(dataset, tmp_path / "no tokenizer is needed", "--subset", "bio", *more) == 0
    assert sorted(p.name for p in out.iterdir()) == ["dataset.jsonl", "pipeline_results.json"]
    assert results(out)["token_count"] is None


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (
            [],
            RENDERED,
        ),
        (["--midtrain-chat-messages"], "what is a fox?\n\na quick brown one"),
        (["--join-columns", "a,b"], "one\n\ntwo"),
        (["--text-column", "b"], "two"),
    ],
)
def test_what_becomes_the_text(tmp_path: Path, tokenizer: Path, more: list[str], text: str) -> None:
    need("jinja2")
    row = {"messages": CHATS[0], "a": "one", "b": "two"}
    path = reference.jsonl(tmp_path / "set.jsonl", [row])
    assert pipeline(path, tokenizer, *more, "--output-dir", str(tmp_path / "o")) == 0
    assert json.loads((tmp_path / "o/dataset.jsonl").read_text()) == {"text": text}
    assert (tmp_path / "o/o_text_document.bin").exists()


def test_a_failing_template_stops(
    tmp_path: Path, tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The original writes the Python text of the list instead."""
    need("jinja2")
    path = reference.jsonl(tmp_path / "set.jsonl", [{"messages": CHATS[0]}, {"messages": [{"content": "a"}]}])
    assert pipeline(path, tokenizer, "--output-dir", str(tmp_path / "o")) == CONFIG
    assert f"{path}:2:1" in capsys.readouterr().err
    assert [p.name for p in (tmp_path / "o").iterdir()] == ["pipeline_results.json"]
    assert results(tmp_path / "o")["status"] == "failed"


def manual(path: Path, tokenizer: Path, *more: str) -> int:
    words = ["preprocess_data", "--input", str(path), "--output-prefix", str(path.parent / "x")]
    words += ["--vocab", str(tokenizer / "tokenizer.json"), "--dataset-impl", "mmap"]
    return main([*words, "--tokenizer-type", "HFTokenizer", *more])


def test_the_manual_command(tmp_path: Path, tokenizer: Path) -> None:
    """The end of a document inside of a row stays what it is to GPT-NeoX: a token."""
    path = reference.jsonl(tmp_path / "a.jsonl", [{"text": t} for t in TEXTS])
    assert manual(path, tokenizer, "--append-eod", "--workers", "50") == 0
    reference.write(tmp_path / "ref", reference.tokens(tokenizer, TEXTS), 8)
    assert reference.same(tmp_path / "x_text_document", tmp_path / "ref")
    assert reference.read(tmp_path / "x_text_document")[1].count(0) == 2


def test_without_append_eod_and_with_keys(tmp_path: Path, tokenizer: Path) -> None:
    path = reference.jsonl(tmp_path / "a.jsonl", [{"a": "one", "b": "two"}])
    assert manual(path, tokenizer, "--jsonl-keys", "a", "b") == 0
    for key, text in (("a", "one"), ("b", "two")):
        assert reference.read(tmp_path / f"x_{key}_document") == reference.tokens(tokenizer, [text], end="")


@pytest.mark.parametrize(
    "more",
    [
        ["--dataset-impl", "lazy"],
        ["--tokenizer-type", "GPT2BPETokenizer"],
        ["--ftfy"],
        ["--append"],
        ["--workers", "many"],
    ],
)
def test_what_is_not_offered_says_so(
    tmp_path: Path, tokenizer: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = reference.jsonl(tmp_path / "a.jsonl", [{"text": "a"}])
    assert manual(path, tokenizer, *more) == CONFIG
    assert capsys.readouterr().err.startswith("error[usage]: ")
    assert not list(tmp_path.glob("x*"))


def test_messages_as_python_writes_them(tmp_path: Path, tokenizer: Path) -> None:
    """`--skip-chat-template`, from files that are named."""
    path = reference.jsonl(tmp_path / "chats.jsonl", [{"messages": CHATS[0]}])
    out = tmp_path / "out"
    more = ["--data-files", str(path), "--skip-chat-template", "--output-dir", str(out)]
    assert pipeline(tmp_path / "none", tokenizer, *more, "--batch-size", "5", "--download-workers", "2") == 0
    rows = [json.loads(line) for line in (out / "dataset.jsonl").read_text().splitlines()]
    assert rows == [{"text": str(CHATS[0])}]


def test_a_folder_of_the_dataset(tmp_path: Path, tokenizer: Path) -> None:
    for name in ("en", "no"):
        (tmp_path / "set" / name).mkdir(parents=True)
        reference.jsonl(tmp_path / "set" / name / "train.jsonl", [{"text": name}])
    out = tmp_path / "out"
    assert pipeline(tmp_path / "set", tokenizer, "--data-dir", "no", "--output-dir", str(out)) == 0
    assert json.loads((out / "dataset.jsonl").read_text()) == {"text": "no"}
    assert pipeline(tmp_path / "set", tokenizer, "--data-dir", "sv") == CONFIG
