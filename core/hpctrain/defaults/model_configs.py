"""The `config.json` of a model on the hub, for the lock: what a plan reckons parameters and memory from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hpctrain.errors import ConfigError
from hpctrain_job import hub
from hpctrain_job.downloads.web import Failed, Patience, Refused, get_json

if TYPE_CHECKING:
    from hpctrain.model.tools import ProgramRunner

NAME = "config.json"
LONGEST = 4096
"""Characters that a lock keeps of it; those of decoders have 600 to 1,500 when only plain values count."""


def fetched(repo: str, commit: str, where: str, tools: ProgramRunner) -> str:
    """Its plain values as one line; nothing where the model has none or the hub is silent, and ConfigError
    where this user may not read it: who trains on it would hear so in an hour."""
    token = hub.token()
    if token:
        tools.hide(token)
    repository = hub.Repo(repo, token=token)
    patience = Patience(tries=2, longest=10)
    try:
        document = get_json(repository.url(NAME, commit), headers=repository.headers, patience=patience)
    except Refused as error:
        if error.status in (401, 403):
            message = str(hub.explained(error, repository))
            raise ConfigError.of("gated", message, where=where) from None
        return ""
    except Failed:
        return ""
    return line(document) if isinstance(document, Mapping) else ""


def line(config: Mapping[str, Any]) -> str:
    """What of a `config.json` says how large the model is."""
    plain = {key: value for key, value in config.items() if _is_plain(value)}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return text if len(text) <= LONGEST else ""


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= 200 and all(type(item) is int for item in value)
    return isinstance(value, (bool, int, float, str))
