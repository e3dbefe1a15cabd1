"""The bytes that the trainers' own scripts wrote from these rows, once, kept as hashes.

Megatron-LM d98e8a64 `tools/preprocess_data.py --tokenizer-type HuggingFaceTokenizer --append-eod` and
GPT-NeoX ea7aefd8 `tools/datasets/preprocess_data.py --tokenizer-type HFTokenizer --append-eod`, both with
tokenizers 0.23.3, transformers 5.23.0 and torch 2.13.0 on Python 3.11, with one and with two workers. Nothing
of theirs was stood in for; Megatron was given `typing.override`, which its Python has and 3.11 has not.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from hpctrain_tokens.options import Options
from hpctrain_tokens.prepare import Request, prepare
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
    "megatron, a beginning": (
        "d54c7ce14bfb913d0bc32c751d442598002604379ef19580a6b20280b71d02d9",
        "71d35bcceb3a24f857d11262748bfbac4f03fa35f356fa5d71256c7fe06cda75",
    ),
    "neox, a beginning": (
        "50f992cf6aa87ef13fee7068d0c5cade8b22ee24c5124af07fb08bc33175fa36",
        "8c046fed4f64a2837de1b18db19d4b655e83abc8edfc7d729ccae6214d9dc174",
    ),
    "megatron": (
        "28455513fb4863dce9bbe83b6774e1eae0a1e62bb62e6a97de26e913ec2aa2c7",
        "a64f3d61a2cdfdad33d708e685a18df2b130296a0611ab73b3f8228c94149a4f",
    ),
    "neox": (
        "28455513fb4863dce9bbe83b6774e1eae0a1e62bb62e6a97de26e913ec2aa2c7",
        "ad7e43a1cb2dbbd2ad6c549bf24783c1a5bd492182258b9d66e8534e272987e5",
    ),
}


def tokenizer(folder: Path, begin: str) -> Path:
    """Bytes and a few merges: the same on every machine; `begin` stands before every text."""
    need("tokenizers")
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

    letters = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in MERGES)]
    vocabulary = {letter: i + 1 for i, letter in enumerate(letters)}
    made = Tokenizer(models.BPE({"<|endoftext|>": 0, **vocabulary}, MERGES))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken("<|endoftext|>", special=True)])
    if begin:
        made.post_processor = processors.TemplateProcessing(f"{begin} $A", special_tokens=[(begin, 0)])
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    said = {"eos_token": "<|endoftext|>", "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    return folder


@pytest.mark.parametrize("engine", ["reference", "fast"])
@pytest.mark.parametrize("case", HASHES)
def test_the_bytes_of_the_trainers_own_scripts(tmp_path: Path, case: str, engine: str) -> None:
    """Megatron makes a document of an empty text where the tokenizer puts a token before it; GPT-NeoX leaves
    empty texts out."""
    if engine == "fast":
        need("gigatoken")
    compat, _, begin = case.partition(", ")
    path = reference.jsonl(tmp_path / "rows.jsonl", [{"text": row} for row in ROWS])
    folder = tokenizer(tmp_path / "tok", "<|endoftext|>" if begin else "")
    options = Options(str(folder), compat=compat, special="keep", engine=engine)
    made = prepare(Request((str(path),), str(tmp_path / "x"), options))
    assert bool(made["not_fast"]) == (bool(begin) and engine == "fast")
    pair = [(tmp_path / f"x_text_document{end}").read_bytes() for end in (".bin", ".idx")]
    assert tuple(hashlib.sha256(data).hexdigest() for data in pair) == HASHES[case]
