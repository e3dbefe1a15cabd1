"""The fast engine gives the reference's bytes, or is not used and says why."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from hpctrain_tokens import cuts, fast, manifest
from hpctrain_tokens.options import Options
from hpctrain_tokens.prepare import Request, prepare
from hpctrain_tokens.tokenizer import Tokenizer
from tests.data import reference
from tests.data.conftest import Make, need

YOUNG = "\u07fd\u07f3"
"""Two marks whose order a normaliser changes; one is younger than the reference's table."""

LETTERS = (
    "abc XYZ 0123 \t\n.,<|>\u00e4\u00df\u0301\u0327\u0416\u3042\u4e2d\uac00\u1100\u1161\u0e01\U0001f642"
    + YOUNG
)


@pytest.fixture
def folder(make_tokenizer: Make) -> Path:
    """Plain bytes and NFC before them: what must not differ by a version of Unicode."""
    need("gigatoken")
    from tokenizers import Tokenizer as Engine
    from tokenizers import normalizers

    made = make_tokenizer("nfc")
    engine = Engine.from_file(str(made / "tokenizer.json"))
    engine.normalizer = normalizers.NFC()
    engine.save(str(made / "tokenizer.json"))
    return made


def both(tmp_path: Path, folder: Path, texts: list[str], **fields: Any) -> dict[str, Any]:
    """The fast result, when its bytes are the reference's."""
    path = reference.jsonl(tmp_path / "a.jsonl", [{"text": text} for text in texts])
    made = {}
    for engine in ("reference", "fast"):
        options = Options(str(folder), engine=engine, special="keep", **fields)
        made[engine] = prepare(Request((str(path),), str(tmp_path / engine), options))
    assert reference.same(tmp_path / "reference_text_document", tmp_path / "fast_text_document")
    assert made["fast"]["key"] == made["reference"]["key"], "who did the work is no part of what it is"
    return made["fast"]


def test_ten_thousand_strings(tmp_path: Path, folder: Path) -> None:
    rng = random.Random(5)
    texts = ["".join(rng.choices(LETTERS, k=rng.randrange(40))) for _ in range(10_000)]
    made = both(tmp_path, folder, texts)
    assert made["engines"] == {fast.NAME: 1}
    assert made["not_fast"] == []


def test_characters_that_the_engines_know_differently(tmp_path: Path, folder: Path) -> None:
    """Found on the tests of Python's own unicodedata: a sample would not have seen it."""
    tokenizer = Tokenizer.at(str(folder))
    engine, why = fast.Fast.of(tokenizer)
    assert engine is not None, why
    texts = ["plain", f"a {YOUNG}", "with \u00e4, \u4e2d and \u0416", "a rocket: \U0001f680", "\ue000"]
    assert engine._letters.trusted(texts) == [True, False, True, True, True]
    both(tmp_path, folder, ["plain", f"-{YOUNG}", "\u07f3\u07fd", "after"])


def test_the_reference_makes_only_the_parts_that_it_has_to(tmp_path: Path, folder: Path) -> None:
    engine, why = fast.Fast.of(Tokenizer.at(str(folder)))
    assert engine is not None, why
    text = f"{'plain words ' * 2000}{YOUNG}{' and more of them' * 2000}"
    parts = engine._parts(text, False)
    assert "".join(part for part, _ in parts) == text
    assert [YOUNG in part for part, _ in parts] == [not known for _, known in parts]
    assert sum(len(part) for part, known in parts if not known) < 2 * cuts.SHORT
    both(tmp_path, folder, ["before", text, "after"])


def test_memory_that_stays_is_renewed_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long row holds more than may be renewed for: again at each of its parts would take minutes."""
    engine, why = fast.Fast.of(Tokenizer.at(str(folder)))
    assert engine is not None, why
    load, loads = engine._load, []

    def counted(text: str) -> Any:
        loads.append(text)
        return load(text)

    engine._load = counted
    held = fast.resident() + 2 * fast.RENEW
    for asked in ("peak", "resident"):
        monkeypatch.setattr(fast, asked, lambda: held)
    for _ in range(3):
        engine._renew()
    assert len(loads) == 1


def test_what_the_post_processor_adds_is_not_lost(tmp_path: Path, make_tokenizer: Make) -> None:
    need("gigatoken")
    made = both(tmp_path, make_tokenizer("bos", bos=True), ["a", "b"])
    assert made["not_fast"] == ["the tokenizer's post-processor adds tokens"]
    assert fast.NAME not in made["engines"]


def test_letters_of_special_tokens_are_for_the_reference(make_tokenizer: Make) -> None:
    need("gigatoken")
    engine, why = fast.Fast.of(Tokenizer.at(str(make_tokenizer("t")), "text"))
    assert (engine, why) == (None, "it cannot read special tokens as letters")


def test_another_version_is_not_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "VERSION", "9.9.9")
    engine, why = fast.Fast.of(Tokenizer.at(str(folder)))
    assert engine is None
    assert why.endswith("was not compared, 9.9.9 was")


def test_a_shard_that_disagrees_is_made_again(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = fast.Fast._agrees

    def differs(self: fast.Fast, texts: list[str]) -> bool:
        return same(self, texts) and "wrong" not in texts

    monkeypatch.setattr(fast.Fast, "_agrees", differs)
    made = both(tmp_path, folder, ["good", "wrong", "<|endoftext|>"])
    assert made["not_fast"] == ["a sample disagreed"]
    assert manifest.read(tmp_path / "fast_text_document.manifest.json")["rows"]["ends_inside"] == 1


def test_without_gigatoken_the_reference_does_it(
    tmp_path: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gigatoken", None)
    made = both(tmp_path, tokenizer, ["a"])
    assert made["not_fast"] == ["gigatoken is not installed here"]
