"""The bytes that the trainers' own scripts wrote from these rows, once, kept as hashes.

Megatron-LM d98e8a64 `tools/preprocess_data.py --tokenizer-type HuggingFaceTokenizer --append-eod` and
GPT-NeoX ea7aefd8 `tools/datasets/preprocess_data.py --tokenizer-type HFTokenizer --append-eod`, both with
tokenizers 0.23.3 on Python 3.11. Two modules of Megatron were stood in for, because they do not start without
a GPU's compiler: `megatron.training`, of which the script takes the group of tokenizer arguments, and
`moe.paged_stash`, which an import reaches. Neither decides a token.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from hpctrain_tokens.options import Options
from hpctrain_tokens.prepare import Asked, prepare
from tests.data import reference
from tests.data.conftest import need

ROWS = [
    "the quick brown fox jumps over the lazy dog",
    "",
    "a<|endoftext|>b",
    "ünïcödé, 日本語 and 🙂",
    " \t\n  spaces\r\n",
    "then the other thing " * 200,
    " ",
    "NUL \x00 inside",
]
MERGES = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("o", "r"), ("i", "n"), ("in", "g")]
HASHES = {
    "megatron": (
        "28455513fb4863dce9bbe83b6774e1eae0a1e62bb62e6a97de26e913ec2aa2c7",
        "a64f3d61a2cdfdad33d708e685a18df2b130296a0611ab73b3f8228c94149a4f",
    ),
    "neox": (
        "28455513fb4863dce9bbe83b6774e1eae0a1e62bb62e6a97de26e913ec2aa2c7",
        "ad7e43a1cb2dbbd2ad6c549bf24783c1a5bd492182258b9d66e8534e272987e5",
    ),
}


def tokenizer(folder: Path) -> Path:
    """Bytes and a few merges: the same on every machine."""
    need("tokenizers")
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in MERGES)]
    vocabulary = {letter: i + 1 for i, letter in enumerate(letters)}
    made = Tokenizer(models.BPE({"<|endoftext|>": 0, **vocabulary}, MERGES))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken("<|endoftext|>", special=True)])
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    said = {"eos_token": "<|endoftext|>", "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    return folder


@pytest.mark.parametrize("engine", ["reference", "fast"])
@pytest.mark.parametrize("compat", HASHES)
def test_the_bytes_of_the_trainers_own_scripts(tmp_path: Path, compat: str, engine: str) -> None:
    if engine == "fast":
        need("gigatoken")
    path = reference.jsonl(tmp_path / "rows.jsonl", [{"text": row} for row in ROWS])
    options = Options(str(tokenizer(tmp_path / "tok")), compat=compat, special="keep", engine=engine)
    made = prepare(Asked((str(path),), str(tmp_path / "x"), options))
    assert made["not_fast"] == []
    pair = [(tmp_path / f"x_text_document{end}").read_bytes() for end in (".bin", ".idx")]
    assert tuple(hashlib.sha256(data).hexdigest() for data in pair) == HASHES[compat]
