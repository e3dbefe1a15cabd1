"""What is wanted, as values; and its key, which names unfinished work."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hpctrain_tokens import FORMAT, widths
from hpctrain_tokens.chat_template import Template
from hpctrain_tokens.faults import DataError
from hpctrain_tokens.fields import Fields
from hpctrain_tokens.tokenizer import Tokenizer

COMPAT = ("neox", "megatron", "nanotron")


@dataclass(frozen=True)
class Options:
    """Everything that decides the bytes of the result."""

    tokenizer: str
    compat: str = "neox"
    column: str = ""
    join: tuple[str, ...] = ()
    pair: tuple[str, ...] = ()
    eod: str = ""
    append_eod: bool = True
    special: str = "error"
    engine: str = "reference"
    """`fast`: gigatoken, where it is proven to give the same numbers."""
    chat: str = "labels"
    """How messages become tokens: labels, text (rendered, no labels) or plain (contents alone)."""
    template: str = ""
    role: str = "assistant"
    only_last: bool = False
    mask: bool = True
    for_rm: bool = False
    reward: str = ""
    binary_reward: bool = False


@dataclass(frozen=True)
class Work:
    """Options as the workers need them: everything looked up."""

    options: Options
    fields: Fields
    code: str
    end: int | None

    @property
    def labelled(self) -> bool:
        return self.fields.kind in ("messages", "pair") and self.options.chat == "labels"

    @property
    def streams(self) -> tuple[str, ...]:
        """What is written for each document."""
        if not self.labelled:
            return ("tokens",)
        label = ("label",) if self.options.mask else ()
        return ("tokens", *label, *(("reward",) if self.options.reward else ()))

    def tokenizer(self) -> Tokenizer:
        return Tokenizer.at(self.options.tokenizer, self.options.special)

    def key(self, tokenizer: Tokenizer) -> str:
        """Content and options that decide the tokens of any row; paths do not count."""
        content: dict[str, Any] = asdict(replace(self.options, tokenizer="", template="", engine=""))
        content |= {"fields": asdict(self.fields), "code": self.code, "end": self.end, "format": FORMAT}
        content |= {"tokenizer": tokenizer.digest, "version": tokenizer.version}
        if self.fields.kind in ("messages", "pair") and self.options.chat != "plain":
            content["template"] = Template.of(tokenizer, self.options.template).digest
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def work(options: Options, fields: Fields, tokenizer: Tokenizer) -> Work:
    """The options with what follows from the tokenizer and the fields of the data."""
    if options.compat not in COMPAT:
        raise DataError.of("data-compat", f'"{options.compat}" is not one of {" ".join(COMPAT)}')
    if options.pair:
        fields = Fields("pair", options.pair)
    draft = Work(options, fields, "i", None)
    if draft.labelled:
        if options.compat == "nanotron":
            raise DataError.of("data-compat", "nanotron's set has no labels", hint="--chat text")
        if (eos := tokenizer.number(tokenizer.token("eos"))) is None and options.for_rm:
            raise DataError.of("no-eod", "the tokenizer names no eos_token", file=str(tokenizer.path))
        return replace(draft, end=eos)  # chats are stored in four bytes, whatever the vocabulary
    code = widths.of(tokenizer.vocabulary, options.compat)
    end = tokenizer.end(options.eod, options.compat) if options.append_eod else None
    return replace(draft, code=code, end=end)


def prefix_of(text: str) -> Path:
    """A prefix of files; a folder is not one."""
    path = Path(text).expanduser()
    if text.endswith("/") or path.is_dir():
        raise DataError.of(
            "data-prefix", f"{text} is a folder; the result needs a name in it", hint=f"{path}/NAME"
        )
    return path
