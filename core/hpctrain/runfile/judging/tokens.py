"""What a token looks like, the refusal of one in a run file, and names that nobody knows."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from hpctrain.model.names import NAME_RULE, is_name
from hpctrain.runfile.faults import Fault
from hpctrain.runfile.keys import Keys, named, nearest

SHAPES = r"""(?x)
    \bhf_[A-Za-z0-9]{16,}
    | \bgh[pousr]_[A-Za-z0-9]{16,} | \bgithub_pat_\w{16,} | \bglpat-[\w-]{16,}
    | \bsk-[\w-]{20,}
    | \bAKIA[0-9A-Z]{16}\b
    | (?<=://)[^\s/@:'"]*:[^\s/@'"]+(?=@) | (?<=https://)[^\s/@'"]{16,}(?=@)
    | (?i:(?<=bearer\s)[\w.~+/-]{8,}=*)
    | (?i:(?:wandb|api[_-]?key|token|secret|passw(?:or)?d)\w*["']?\s*[=:]\s*["']?)
      (?P<named>[0-9a-f]{40})\b
    """
"""Shapes that everybody knows; of a match with the group `named` only that is the token."""

_NAMED = r"(?i:TOKEN|API_KEY|SECRET|PASSWORD)\Z"
_SECRET_NAMES = (("wandb", "wandb"), ("hf_", "huggingface"), ("hugging", "huggingface"))
SYNONYMS = {"hf": "huggingface", "hub": "huggingface", "wb": "wandb", "w&b": "wandb"}
"""Other names that people give to the secrets that we know."""


def check_no_tokens(env: Mapping[str, str]) -> Iterator[Fault]:
    """Variables that hold a token: a run file is shared, copied into runs and shown in plans."""
    for key, value in env.items():
        if value and (re.search(_NAMED, key) or re.search(SHAPES, f"{key}={value}")):
            yield Fault(
                code="secret-in-env",
                message=f"{key} holds a token; a run file names tokens and never holds them",
                hint=f"secrets = [{json.dumps(_secret(key, value))}]",
                notes=("where its value comes from: hpctrain help secrets",),
                path=(key,),
                at_key=True,
                hide=True,
            )


_ADDRESS = r"://(?P<login>[^\s/@:'\"]*:[^\s/@'\"]+|[^\s/@:'\"]{16,}:?)@"


def check_texts(run: Mapping[str, object]) -> Iterator[Fault]:
    """Logins in addresses, and what looks like a token, wherever in a run they stand: scripts, records and
    the lists of processes would show them. Variables and names of secrets have rules of their own."""
    for path, text in _texts({key: run[key] for key in run if key not in ("env", "secrets")}, ()):
        if "@" in text and (match := re.search(_ADDRESS, text)):
            yield _login(path, host=re.split(r"[\s/:'\"]", text[match.end() :])[0])
        elif re.search(SHAPES, text):
            yield _token(path, secret=_secret("", text) or "NAME")


def _login(path: Keys, host: str) -> Fault:
    return Fault(
        code="secret-in-url",
        message=f"{named(path)} holds a login; a run file is shared, copied into runs and shown in plans",
        hint=f"machine {host} login USER password TOKEN      (a line of ~/.netrc, mode 0600)",
        notes=("pip, uv, git and hpctrain read it there; pip.conf and PIP_INDEX_URL may hold one too",),
        path=path,
        hide=True,
    )


def _token(path: Keys, secret: str) -> Fault:
    return Fault(
        code="secret-in-text",
        message=f"{named(path)} seems to hold a token; other users see the command lines of your jobs",
        hint=f"secrets = [{json.dumps(secret)}]",
        notes=("the task has it as a variable then: hpctrain help secrets",),
        path=path,
        hide=True,
        fatal=False,
    )


def _texts(value: object, path: Keys) -> Iterator[tuple[Keys, str]]:
    """Every string of a document with the way to it."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, (*path, key))
    elif isinstance(value, (list, tuple)):
        for number, inner in enumerate(value):
            yield from _texts(inner, (*path, number))
    elif isinstance(value, str):
        yield path, value


def check_secrets(names: Iterable[str]) -> Iterator[Fault]:
    """Names of tokens; what is none may be the token itself, and is not shown."""
    for number, name in enumerate(names):
        if re.search(SHAPES, f"token={name}") or _random(name):
            secret = _secret("", name)
            yield Fault(
                code="secret",
                complaint="is a token; a run file names tokens and never holds them",
                value=json.dumps(secret) if secret else "",
                notes=("rotate a token that has been in a file",),
                path=(number,),
                hide=True,
            )
        elif not is_name(name):
            yield Fault(code="name", complaint="is not a name", notes=(NAME_RULE,), path=(number,), hide=True)


def _random(text: str) -> bool:
    """Letters and digits without an end, as nobody names anything."""
    return len(text) >= 24 and text.isalnum() and not text.isalpha()


def unknown_secrets(names: Iterable[str], settings: Collection[str]) -> Iterator[Fault]:
    """A warning for each name that neither hpctrain nor the user's settings know."""
    known_names = {*settings, *(name for _, name in _SECRET_NAMES)}
    for number, name in enumerate(names):
        if name not in known_names:
            near = [SYNONYMS[name]] if name in SYNONYMS else nearest(name, known_names)
            suggestion = f"; {json.dumps(near[0])} is" if near else ""
            settings_table = f'[secrets]\n{name} = {{ file = "~/.config/{name}-token" }}'
            yield Fault(
                code="unknown-name",
                message=f"no secret {json.dumps(name)} is known{suggestion}",
                hint=json.dumps(near[0]) if near else settings_table,
                notes=() if near else ("the table belongs in your settings, never in the run file",),
                path=("secrets", number),
                fatal=False,
            )


def _secret(key: str, value: str) -> str:
    """The secret that sets this variable."""
    text = f"{key} {value}".lower()
    return next((name for part, name in _SECRET_NAMES if part in text), key.lower())
