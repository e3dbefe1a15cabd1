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

from hpctrain.errors import ConfigError, HpctrainError
from hpctrain.model.cluster import Cluster

if TYPE_CHECKING:
    from hpctrain.cli.out import Out

TABLE = "tokenizers"
GIVEN = ("tokenizer", "tokenizer_path", "vocab_file", "hf_tokenizer")
"""What the commands call it."""


class Named(NamedTuple):
    """Where a tokenizer lies, and its chat template where that lies elsewhere."""

    path: str
    template: str = ""


def of(cluster: Cluster) -> dict[str, Named]:
    """Those of a cluster."""
    table = cluster.facts.get(TABLE, {})
    if not isinstance(table, dict):
        raise _wrong(f"facts.{TABLE}")
    return {name: _read(name, said) for name, said in table.items()}


def _read(name: str, said: Any) -> Named:
    given = {"path": said} if isinstance(said, str) else said
    if not isinstance(given, dict) or "path" not in given or set(given) - set(Named._fields):
        raise _wrong(f"facts.{TABLE}.{name}")
    if not all(isinstance(value, str) for value in given.values()):
        raise _wrong(f"facts.{TABLE}.{name}")
    return Named(**given)


def _wrong(where: str) -> ConfigError:
    said = "a named tokenizer is a path, or a table with path and template"
    return ConfigError.of("data-options", said, where=where, hint='base = "/path/to/tokenizer.json"')


def put(args: Namespace, out: Out) -> None:
    """Paths in the place of names, where a command was given one of this machine's."""
    asked = {key: getattr(args, key, "") for key in GIVEN}
    words = {key: word for key, word in asked.items() if word and "/" not in word and not Path(word).exists()}
    known = _here(out) if words else {}
    for key, word in words.items():
        if word in known:
            setattr(args, key, known[word].path)
            if known[word].template and not getattr(args, "chat_template", "given"):
                args.chat_template = known[word].template


def _here(out: Out) -> dict[str, Named]:
    from hpctrain.cli.clusters import read
    from hpctrain.session import detected

    try:
        name = detected()
    except HpctrainError:  # on no cluster that is installed
        name = "local"
    return of(read(name, out).cluster)
