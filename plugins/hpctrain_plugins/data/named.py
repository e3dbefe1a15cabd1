"""Tokenizers and their templates by the names that a project gives them, among the facts of a cluster.

In a user's settings, or without `cluster.isambard` in the file of the site::

    [cluster.isambard.facts.tokenizers]
    base     = "/projects/a5k/public/data/neox_tokenizer/tokenizer.json"
    instruct = { path = "/projects/…/tokenizer.json", template = "/projects/…/chat_template.jinja" }
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hpctrain.plugin import Cluster, ConfigError, HpctrainError

if TYPE_CHECKING:
    from hpctrain.command import Out

TABLE = "tokenizers"
TOKENIZER_OPTIONS = ("tokenizer", "tokenizer_path", "vocab_file", "hf_tokenizer")
"""What the commands call it."""


class Named(NamedTuple):
    """Where a tokenizer lies, and its chat template where that lies elsewhere."""

    path: str
    template: str = ""


def of(cluster: Cluster) -> dict[str, Named]:
    """The named tokenizers of a cluster, from its facts."""
    table = cluster.facts.get(TABLE, {})
    if not isinstance(table, dict):
        raise _wrong(f"facts.{TABLE}")
    return {name: _read(name, entry) for name, entry in table.items()}


def _read(name: str, entry: Any) -> Named:
    fields = {"path": entry} if isinstance(entry, str) else entry
    if not isinstance(fields, dict) or "path" not in fields or set(fields) - set(Named._fields):
        raise _wrong(f"facts.{TABLE}.{name}")
    if not all(isinstance(value, str) for value in fields.values()):
        raise _wrong(f"facts.{TABLE}.{name}")
    return Named(**fields)


def _wrong(where: str) -> ConfigError:
    message = "a named tokenizer is a path, or a table with path and template"
    return ConfigError.of("data-options", message, where=where, hint='base = "/path/to/tokenizer.json"')


def put(args: Namespace, out: Out) -> None:
    """Paths in the place of names, where a command was given one of this machine's."""
    values = {key: getattr(args, key, "") for key in TOKENIZER_OPTIONS}
    words = {
        key: word for key, word in values.items() if word and "/" not in word and not Path(word).exists()
    }
    tokenizers = _detected_tokenizers(out) if words else {}
    for key, word in words.items():
        if word in tokenizers:
            setattr(args, key, tokenizers[word].path)
            if tokenizers[word].template and not getattr(args, "chat_template", "given"):
                args.chat_template = tokenizers[word].template


def _detected_tokenizers(out: Out) -> dict[str, Named]:
    from hpctrain.command import detected_cluster, read_facts  # most commands name a tokenizer

    try:
        name = detected_cluster()
    except HpctrainError:  # on no cluster that is installed
        name = "local"
    return of(read_facts(name, out).cluster)
