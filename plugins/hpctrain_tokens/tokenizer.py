"""A tokenizer of the hub's form: `tokenizer.json` with what its folder says of special tokens."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from hpctrain_job.files import documents
from hpctrain_tokens import hub, safely
from hpctrain_tokens.faults import DataError

FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja")
ENDS = {
    "neox": ("<|endoftext|>", "eos"),
    "megatron": ("eos", "<|endoftext|>"),
    "nanotron": ("eos", "<|endoftext|>"),
}
"""What ends a document where nothing was said: each trainer's own choice, then the other's."""


def _configuration(path: Path) -> dict[str, Any]:
    """What the folder says of special tokens; nothing where it has no such file."""
    if not path.is_file():
        return {}
    try:
        document = documents.read(path)
    except ValueError as error:  # of its letters or of its JSON
        raise DataError.of("data-tokenizer", f"cannot be read: {error}", file=str(path)) from None
    if not isinstance(document, dict):
        raise DataError.of("data-tokenizer", "cannot be used: it is not an object", file=str(path))
    return document


@dataclass(frozen=True)
class Tokenizer:
    """`path` is `tokenizer.json`; `special` says what its tokens mean when a document has their text:
    `keep` and `error` read them as tokens, `text` as the letters they are."""

    path: Path
    special: str = "error"
    config: dict[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def at(cls, location: str, special: str = "error") -> Tokenizer:
        """The tokenizer in a folder, that is this file, or that the hub has by this name."""
        path = Path(location).expanduser()
        if not path.exists() and hub.NAME.match(location):
            path = hub.folder(location, kind="model", files=FILES)
        path = path / "tokenizer.json" if path.is_dir() else path
        if not path.is_file():
            raise DataError.of("no-tokenizer", f"there is no tokenizer.json at {location}", file=str(path))
        return cls(path, special, _configuration(path.with_name("tokenizer_config.json")))

    @cached_property
    def engine(self) -> Any:
        """The library's tokenizer, without the cutting and filling that its file may ask for."""
        try:
            import tokenizers
        except ModuleNotFoundError as error:
            raise DataError.lacking(error, "a tokenizer", str(self.path)) from None
        try:
            engine = tokenizers.Tokenizer.from_file(str(self.path))
        except Exception as error:  # the library raises a bare Exception
            raise DataError.of("data-tokenizer", f"cannot be read: {error}", file=str(self.path)) from None
        engine.no_truncation()
        engine.no_padding()
        engine.encode_special_tokens = self.special == "text"
        return engine

    @cached_property
    def digest(self) -> str:
        """A digest of the content of `tokenizer.json`."""
        return safely.sha256(self.path)

    @cached_property
    def vocabulary(self) -> int:
        """The size of the vocabulary with added tokens; larger where numbers were left out, since the
        largest must fit."""
        numbers = self.engine.get_vocab(with_added_tokens=True).values()
        size = int(self.engine.get_vocab_size(with_added_tokens=True))
        return max(size, max(numbers, default=-1) + 1)

    @property
    def version(self) -> str:
        """Name and version of the library that encodes."""
        import tokenizers

        return f"tokenizers {tokenizers.__version__}"

    def token(self, name: str) -> str:
        """A special token by its role in `tokenizer_config.json` (eos, bos); "" when it has none."""
        value = self.config.get(f"{name}_token")
        return str(value.get("content", "") if isinstance(value, dict) else value or "")

    def number(self, token: str) -> int | None:
        """The number of a token, None when there is no such token."""
        token_id = self.engine.token_to_id(token)
        return None if token_id is None else int(token_id)

    def end(self, eod: str, compat: str) -> int:
        """The number of the token that ends a document."""
        names = (eod,) if eod else ENDS[compat]
        tokens = [self.token("eos") if name == "eos" else name for name in names]
        for token in filter(None, tokens):
            if (number := self.number(token)) is not None:
                return number
        tried = " or ".join(dict.fromkeys(filter(None, tokens))) or "an eos_token"
        raise DataError.of(
            "no-eod",
            f"the tokenizer has no {tried}, which would end a document",
            file=str(self.path),
            hint="--eod TOKEN, or --no-eod",
        )

    def encode(self, texts: Sequence[str], code: str, *, bare: bool = False) -> Iterator[array[int]]:
        """The numbers of each text, stored as `code`; `bare` leaves out what the post-processor adds."""
        batch = getattr(self.engine, "encode_batch_fast", self.engine.encode_batch)
        for encoding in batch(texts, add_special_tokens=not bare):
            yield array(code, encoding.ids)

    def decode(self, numbers: Sequence[int]) -> str:
        """The text of tokens, special ones among them."""
        return str(self.engine.decode(list(numbers), skip_special_tokens=False))
