"""A chat template of the hub's form, rendered as the model's own library does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from hpctrain_job.files import documents
from hpctrain_tokens.faults import DataError, RowError
from hpctrain_tokens.tokenizer import Tokenizer

Turn = dict[str, Any]
_REFUSAL = "Refusal"
"""The class of what a template says by `raise_exception`; Jinja's own is imported late."""


@dataclass(frozen=True)
class Template:
    """The Jinja text, and the special tokens that it may name."""

    text: str
    tokens: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, tokenizer: Tokenizer, path: str = "") -> Template:
        """The template in a file, else beside the tokenizer, else in its configuration."""
        beside = tokenizer.path.with_name("chat_template.jinja")
        chosen = Path(path).expanduser() if path else beside
        if path and not chosen.is_file():
            raise DataError.of("no-template", f"there is no template at {path}", file=path)
        text = _read(chosen) if chosen.is_file() else _configured(tokenizer.config)
        if not text:
            raise DataError.of(
                "no-template",
                "the tokenizer has no chat template",
                file=str(tokenizer.path),
                hint="--chat-template FILE",
            )
        return cls.written(tokenizer, text)

    @classmethod
    def written(cls, tokenizer: Tokenizer, text: str) -> Template:
        """The template of this text, with the special tokens of a tokenizer."""
        names = [name for name in tokenizer.config if name.endswith("_token")]
        tokens = ((name, tokenizer.token(name.removesuffix("_token"))) for name in names)
        return cls(text, tuple((name, token) for name, token in tokens if token))

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps([self.text, self.tokens]).encode()).hexdigest()

    @property
    def _world(self) -> dict[str, Any]:
        """The names of a template. None tells the time: the same rows give the same tokens every day."""
        return {"tools": None, "documents": None, **dict(self.tokens)}

    @cached_property
    def _compiled(self) -> Any:
        try:
            from jinja2 import TemplateSyntaxError
            from jinja2.ext import loopcontrols
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ModuleNotFoundError as error:
            raise DataError.lacking(error, "a chat template") from None
        world = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_generation(), loopcontrols]
        )
        world.filters["tojson"] = _tojson
        world.globals["raise_exception"] = _refuse
        try:
            return world.from_string(self.text)
        except TemplateSyntaxError as error:
            raise DataError.of(
                "chat-template", f"line {error.lineno} of the template: {error.message}"
            ) from None

    def render(self, turns: Sequence[Turn], *, prompt: bool = False, tools: object = None) -> str:
        """The conversation as text; `prompt` opens the next turn of the model."""
        template, world = self._compiled, {**self._world, "tools": tools}
        try:
            return str(template.render(messages=list(turns), add_generation_prompt=prompt, **world))
        except Exception as error:  # a template may raise what it likes
            if type(error).__name__ == _REFUSAL:
                raise RowError("chat-refused", f"the chat template refuses it: {error}") from None
            raise RowError("chat-template", f"the chat template fails: {error}") from None


def _read(path: Path) -> str:
    try:
        return documents.text(path)
    except (OSError, ValueError) as error:
        raise DataError.of("chat-template", f"cannot be read: {error}", file=str(path)) from None


def _configured(config: dict[str, Any]) -> str:
    template = config.get("chat_template") or ""
    if isinstance(template, list):
        template = next((row["template"] for row in template if row.get("name") == "default"), "")
    return str(template)


def _tojson(value: Any, indent: int | None = None, **_: Any) -> str:
    """Without the escapes for HTML that Jinja's own filter makes."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> NoReturn:
    from jinja2 import TemplateError

    raise type(_REFUSAL, (TemplateError,), {})(message)


def _generation() -> Any:
    """`{% generation %}`, which marks the model's words for other uses, renders what it holds."""
    from jinja2 import nodes
    from jinja2.ext import Extension

    class Generation(Extension):
        tags = {"generation"}  # noqa: RUF012  (Jinja's way to say it)

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    return Generation
