"""The result against a plain writer, for each trainer's rules; reuse, replacement, what is refused."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest

from hpctrain_tokens import histogram, manifest, pieces, pool
from hpctrain_tokens.faults import DataError
from hpctrain_tokens.merge import Merger
from hpctrain_tokens.options import Options
from hpctrain_tokens.prepare import Request, count, prepare
from tests.data import reference
from tests.data.conftest import Make

WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "ünïcödé", "日本語", "123", "\t\n", "def", "return")


def texts(number: int, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randrange(0, 30))) for _ in range(number)]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several pieces from little data; only for work in this process."""
    monkeypatch.setattr(pieces, "SIZE", 1000)


def rows(path: Path, given: list[str]) -> Path:
    return reference.jsonl(path, [{"text": text} for text in given])


def made(path: Path, out: Path, tokenizer: Path, **fields: Any) -> dict[str, Any]:
    asked = {
        k: fields.pop(k) for k in ("workers", "on_bad", "force", "model_vocabulary", "split") if k in fields
    }
    return prepare(Request((str(path),), str(out), Options(str(tokenizer), **fields), **asked))


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("compat", ["neox", "megatron"])
@pytest.mark.parametrize("bos", [False, True])
def test_the_same_bytes_as_a_plain_writer(
    tmp_path: Path, make_tokenizer: Make, compat: str, bos: bool
) -> None:
    folder = make_tokenizer("t", bos=bos)
    given = [*texts(300), "", "last"]
    result = made(rows(tmp_path / "a.jsonl", given), tmp_path / "x", folder, compat=compat)
    wanted = reference.tokens(folder, given, compat)
    reference.write(tmp_path / "ref", wanted, 8)
    assert reference.same(tmp_path / "x_text_document", tmp_path / "ref")
    assert result["documents"] == len(wanted)
    assert result["tokens"] == sum(map(len, wanted))
    empty = sum(not text for text in given)
    assert empty > 1
    assert result["rows"]["empty"] == (0 if bos and compat == "megatron" else empty)
    assert not list(tmp_path.glob(".*")), "no work folder stays"


def test_no_end_and_another_end(tmp_path: Path, tokenizer: Path) -> None:
    path = rows(tmp_path / "a.jsonl", ["one", "two"])
    made(path, tmp_path / "x", tokenizer, append_eod=False)
    assert reference.read(tmp_path / "x_text_document") == reference.tokens(tokenizer, ["one", "two"], end="")
    made(path, tmp_path / "y", tokenizer, eod="<|padding|>")
    wanted = reference.tokens(tokenizer, ["one", "two"], end="<|padding|>")
    assert reference.read(tmp_path / "y_text_document") == wanted


def test_megatron_takes_the_tokenizers_own_end(tmp_path: Path, make_tokenizer: Make) -> None:
    folder = make_tokenizer("eos", eos_token={"content": "<|im_end|>", "lstrip": False})
    path = rows(tmp_path / "a.jsonl", ["one"])
    made(path, tmp_path / "x", folder, compat="megatron")
    assert reference.read(tmp_path / "x_text_document")[0][-1] == 3
    made(path, tmp_path / "y", folder, compat="neox")
    assert reference.read(tmp_path / "y_text_document")[0][-1] == 0


def test_a_tokenizer_that_cuts_and_fills_does_neither(tmp_path: Path, make_tokenizer: Make) -> None:
    from tokenizers import Tokenizer

    folder = make_tokenizer("cut")
    engine = Tokenizer.from_file(str(folder / "tokenizer.json"))
    wanted = engine.encode("the quick brown fox").ids
    engine.enable_truncation(2)
    engine.enable_padding(length=50)
    engine.save(str(folder / "tokenizer.json"))
    made(rows(tmp_path / "a.jsonl", ["the quick brown fox"]), tmp_path / "x", folder)
    assert reference.read(tmp_path / "x_text_document") == [[*wanted, 0]]


def test_nanotrons_set(tmp_path: Path, make_tokenizer: Make) -> None:
    """Raw tokens without what the post-processor adds, the ends of documents, three lines."""
    folder = make_tokenizer("nano", bos=True)
    given = ["one two", "", "three"]
    made(rows(tmp_path / "a.jsonl", given), tmp_path / "set", folder, compat="nanotron")
    plain = reference.tokens(make_tokenizer("plain"), ["one two", "three"])
    flat = [token for row in plain for token in row]
    base = tmp_path / "set/00000_unshuffled.ds"
    assert base.read_bytes() == struct.pack(f"<{len(flat)}H", *flat)
    assert Path(f"{base}.index").read_bytes() == struct.pack("<2Q", len(plain[0]), len(flat))
    assert Path(f"{base}.metadata").read_text() == f"{folder}|2\n{len(flat)}\n{len(flat):.1f} T"


def test_joined_columns(tmp_path: Path, tokenizer: Path) -> None:
    path = reference.jsonl(
        tmp_path / "a.jsonl", [{"a": "one", "b": "two"}, {"a": "", "b": "three"}, {"b": "x"}]
    )
    made(path, tmp_path / "x", tokenizer, join=("a", "b"))
    wanted = reference.tokens(tokenizer, ["one\n\ntwo", "three", "x"])
    assert reference.read(tmp_path / "x_text_document") == wanted


def test_workers_change_no_byte(tmp_path: Path, tokenizer: Path) -> None:
    """Real processes over real pieces of eight megabytes."""
    line = json.dumps({"text": "the quick brown fox " * 50}) + "\n"
    path = tmp_path / "a.jsonl"
    path.write_text(line * (pieces.SIZE // len(line) + 1000))
    results = [made(path, tmp_path / f"x{n}", tokenizer, workers=n) for n in (1, 2)]
    assert len({json.dumps({**r, "files": None, "prefix": None}) for r in results}) == 1
    hashes = [[row["sha256"] for row in r["files"].values()] for r in results]
    assert hashes[0] == hashes[1]


def test_a_worker_that_dies_is_an_error(
    tmp_path: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_serve", _dies)
    monkeypatch.setattr(pieces, "SIZE", 1000)
    path = rows(tmp_path / "a.jsonl", texts(100))
    with pytest.raises(DataError, match=r"a worker ended \(signal 9\)"):
        made(path, tmp_path / "x", tokenizer, workers=2)


def _dies(*_: object) -> None:
    import os
    import signal

    os.kill(os.getpid(), signal.SIGKILL)


def test_only_what_is_damaged_is_made_again(
    tmp_path: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "SIZE", 1000)
    path = rows(tmp_path / "a.jsonl", texts(100))
    made(path, tmp_path / "whole", tokenizer)
    interrupted(path, tmp_path / "x", tokenizer)
    shards = sorted(tmp_path.glob(".x.work/*/*.tokens.bin"))
    shards[1].write_bytes(bytes([shards[1].read_bytes()[0] ^ 1]) + shards[1].read_bytes()[1:])
    before = [shard.stat().st_ino for shard in shards]
    interrupted(path, tmp_path / "x", tokenizer, workers=2)
    assert [i for i, shard in enumerate(shards) if shard.stat().st_ino != before[i]] == [1]
    made(path, tmp_path / "x", tokenizer)
    assert reference.same(tmp_path / "x_text_document", tmp_path / "whole_text_document")


def interrupted(path: Path, out: Path, tokenizer: Path, **asked: int) -> None:
    """All shards, and no result."""
    with pytest.MonkeyPatch.context() as ends:
        ends.setattr(Merger, "write", _interrupts)
        with pytest.raises(KeyboardInterrupt):
            made(path, out, tokenizer, **asked)


def _interrupts(*_: object) -> None:
    raise KeyboardInterrupt


def test_what_a_killed_writer_left_goes(tmp_path: Path, tokenizer: Path) -> None:
    ends = (".x_text_document.bin.1.partial", "..x_text_document.idx.1.partial")
    for name in (*ends, ".x_text_document.manifest.json.1.partial", ".y_text_document.bin.1.partial"):
        (tmp_path / name).touch()
    made(rows(tmp_path / "a.jsonl", texts(5)), tmp_path / "x", tokenizer)
    assert [path.name for path in tmp_path.glob(".*")] == [".y_text_document.bin.1.partial"]


def test_the_same_content_is_not_made_again(tmp_path: Path, tokenizer: Path) -> None:
    path = rows(tmp_path / "a.jsonl", texts(50))
    first = made(path, tmp_path / "x", tokenizer)
    before = (tmp_path / "x_text_document.bin").stat().st_mtime_ns
    other = rows(tmp_path / "a.jsonl", texts(50))  # written again, the same content
    again = made(other, tmp_path / "x", tokenizer)
    assert (first["reused"], again["reused"]) == (False, True)
    assert (tmp_path / "x_text_document.bin").stat().st_mtime_ns == before


def test_another_result_is_not_replaced_silently(tmp_path: Path, tokenizer: Path) -> None:
    made(rows(tmp_path / "a.jsonl", texts(50)), tmp_path / "x", tokenizer)
    changed = rows(tmp_path / "a.jsonl", texts(50, seed=2))
    with pytest.raises(DataError, match="other data or options"):
        made(changed, tmp_path / "x", tokenizer)
    assert not made(changed, tmp_path / "x", tokenizer, force=True)["reused"]
    assert len(reference.read(tmp_path / "x_text_document")) == 50 - texts(50, seed=2).count("")


def test_a_result_that_was_damaged_is_not_trusted(tmp_path: Path, tokenizer: Path) -> None:
    path = rows(tmp_path / "a.jsonl", texts(50))
    made(path, tmp_path / "x", tokenizer)
    with (tmp_path / "x_text_document.bin").open("r+b") as file:
        file.write(b"\xff\xff")
    with pytest.raises(DataError, match=r"x_text_document.bin does not match its manifest"):
        made(path, tmp_path / "x", tokenizer)


def test_the_vocabulary_of_the_model(tmp_path: Path, tokenizer: Path) -> None:
    path = rows(tmp_path / "a.jsonl", ["a"])
    with pytest.raises(DataError, match="the model's vocabulary is 100"):
        made(path, tmp_path / "x", tokenizer, model_vocabulary=100)
    assert made(path, tmp_path / "x", tokenizer, model_vocabulary=512)["documents"] == 1


def test_count_is_what_the_result_holds(tmp_path: Path, tokenizer: Path) -> None:
    path = rows(tmp_path / "a.jsonl", texts(200))
    counted = count(Request((str(path),), "", Options(str(tokenizer))))
    result = made(path, tmp_path / "x", tokenizer)
    assert {k: counted[k] for k in ("documents", "tokens", "lengths", "longest")} == {
        k: result[k] for k in ("documents", "tokens", "lengths", "longest")
    }
    lengths = [len(d).bit_length() for d in reference.read(tmp_path / "x_text_document")]
    assert counted["lengths"] == {str(bits): lengths.count(bits) for bits in sorted(set(lengths))}


def test_the_histogram() -> None:
    assert histogram.lines({"2": 10, "4": 5}, ascii=True, width=10) == [
        " 2-3  ########## 10",
        " 4-7   0",
        "8-15  ##### 5",
    ]
    assert histogram.lines({"2": 16, "3": 1}, width=2) == ["2-3  ██ 16", "4-7  ▏ 1"]
    drawn = histogram.picture({"2": 10, "4": 5}, "a < b")
    assert drawn.startswith("<svg ")
    assert all(word in drawn for word in ("a &lt; b", ">10<", ">8-15<"))


def test_the_manifest_knows_no_folder(tmp_path: Path, tokenizer: Path) -> None:
    """Two results of the same content have the same manifest, wherever they lie."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        made(rows(tmp_path / name / "a.jsonl", texts(20)), tmp_path / name / "x", tokenizer)
    one, two = (manifest.read(tmp_path / n / "x_text_document.manifest.json") for n in ("one", "two"))
    assert one == two
    assert str(tmp_path) not in json.dumps(one)
