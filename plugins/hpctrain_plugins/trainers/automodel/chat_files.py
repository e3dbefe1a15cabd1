"""The chat files that a configuration names, and how the ChatDataset of Automodel 0.7.0 reads them.

It takes rows apart when it trains on them, so that one which it does not understand ends a job of hours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from hpctrain.plugin import Problem, Tell
from hpctrain_plugins.trainers import chats
from hpctrain_plugins.trainers.external.config import Config
from hpctrain_tokens.chat.trained import TAKEN, Reader
from hpctrain_tokens.fields import Fields

_SECTIONS = ("dataset", "validation_dataset")
_ROLES = ("system", "user", "assistant", "tool")
_BROKEN_LINES = ("long-row", "not-json", "truncated-row")
"""What `skip_invalid_samples` leaves out."""
_ASSET = re.compile(r"\{assets\.([\w-]+)\}(/.*)?")


def problems(config: Config, files: Mapping[str, Path], tell: Tell) -> Iterator[Problem]:
    """What is wrong with the chats that are on this machine."""
    for section in _SECTIONS:
        if not config.text(section, "_target_").endswith(".ChatDataset"):
            continue
        template, faults = chats.template_of(_model(config, section, files), _template(config, section))
        yield from faults
        skips = config.get(section, "skip_invalid_samples") is True
        reader = Reader(
            Fields("messages", ("messages",)),
            roles=_ROLES,
            taken=TAKEN.union(_BROKEN_LINES) if skips else TAKEN,
            instead="conversations",
            separates=True,
            template=template,
        )
        for path in _paths(config, section, files):
            yield from chats.problems(path, reader, tell)


def _paths(config: Config, section: str, files: Mapping[str, Path]) -> Iterator[Path]:
    value = config.get(section, "path_or_dataset_id")
    for text in value if isinstance(value, list) else [value]:
        path = _located(text, files) if isinstance(text, str) else None
        if path is not None:
            yield path


def _model(config: Config, section: str, files: Mapping[str, Path]) -> Path | None:
    """The folder with the tokenizer: of the section, or of the model."""
    keys = ((section, "tokenizer"), ("tokenizer",), ("model",))
    names = (config.text(*key, "pretrained_model_name_or_path") for key in keys)
    return _located(next(filter(None, names), ""), files)


def _template(config: Config, section: str) -> str:
    """A template that the section holds itself."""
    text = config.text(section, "chat_template")
    return text if "{%" in text or "{{" in text else ""


def _located(text: str, files: Mapping[str, Path]) -> Path | None:
    match = _ASSET.fullmatch(text)
    if match is None:
        return Path(text) if text.startswith("/") else None
    asset = files.get(match[1])
    return asset and (asset / match[2].lstrip("/") if match[2] else asset)
