"""A small tokenizer of the hub's form, and the libraries that real work needs."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import needs

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ("<|endoftext|>", "<|padding|>", "<|im_start|>", "<|im_end|>", "<s>")


def need(*names: str) -> None:
    """Skip, or fail where everything was promised to be there."""
    for name in names:
        needs("data", importlib.util.find_spec(name) is not None, f"{name} is not installed")


Make = Callable[..., Path]


@pytest.fixture(scope="session")
def make_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """A function that makes a tokenizer's folder; `bos` puts `<s>` in front of every text."""
    need("tokenizers")

    def make(name: str, *, bos: bool = False, special: tuple[str, ...] = SPECIAL, **config: object) -> Path:
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        text = [Path(__file__).read_text(), TEMPLATE, "the quick brown fox jumps over the lazy dog"]
        trainer = trainers.BpeTrainer(
            vocab_size=500,
            special_tokens=list(special),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator(text, trainer)
        if bos:
            number = tokenizer.token_to_id("<s>")
            tokenizer.post_processor = processors.TemplateProcessing(
                "<s> $A", special_tokens=[("<s>", number)]
            )
        folder = tmp_path_factory.mktemp(name)
        tokenizer.save(str(folder / "tokenizer.json"))
        said = {"eos_token": "<|endoftext|>", "chat_template": TEMPLATE, **config}
        (folder / "tokenizer_config.json").write_text(json.dumps(said))
        return folder

    return make


@pytest.fixture(scope="session")
def tokenizer(make_tokenizer: Make) -> Path:
    return make_tokenizer("plain")
