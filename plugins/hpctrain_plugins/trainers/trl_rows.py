"""How our trainer reads rows of JSON, and what is wrong with those that are on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hpctrain.plugin import Problem, Tell
from hpctrain_plugins.trainers import chats
from hpctrain_plugins.trainers.trl_checks import parts
from hpctrain_tokens.chat.trained import SUFFIXES, Reader, columns
from hpctrain_tokens.fields import Fields
from hpctrain_trl import fields

_KINDS = {"pairs": "pair", "messages": "messages", "text": "text"}


def problems(options: Any, files: Mapping[str, Path], tell: Tell) -> Iterator[Problem]:
    """Every file of rows that the settings name."""
    for side in ("train", "eval"):
        path = _located(getattr(options, f"{side}_dataset"), files)
        if path is None or path.suffix not in SUFFIXES or not path.is_file():
            continue
        kind, names = fields.chosen(options, side, columns(path))
        model = _located(options.tokenizer or options.model, files) if kind == "messages" else None
        template, faults = chats.template_of(model)
        yield from faults
        yield from chats.problems(path, Reader(Fields(_KINDS[kind], names), template=template), tell)


def _located(spec: str, files: Mapping[str, Path]) -> Path | None:
    name, below, _ = parts(spec)
    if spec.startswith("/"):
        return Path(spec)
    return files[name] / below if name in files else None
