"""What a token looks like, the refusal of one in a run file, and names that nobody knows."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from hpctrain.model.names import NAME_RULE, is_name
from hpctrain.runfile.faults import Fault
from hpctrain.runfile.keys import nearest

SHAPES = r"""(?x)
    \bhf_[A-Za-z0-9]{16,}
    | \bgh[pousr]_[A-Za-z0-9]{16,} | \bgithub_pat_\w{16,} | \bglpat-[\w-]{16,}
    | \bsk-[\w-]{20,}
    | \bAKIA[0-9A-Z]{16}\b
    | (?<=://)[^\s/@:'"]*:[^\s/@'"]+(?=@)
    | (?i:(?<=bearer\s)[\w.~+/-]{8,}=*)
    | (?i:(?:wandb|api[_-]?key|token|secret|passw(?:or)?d)\w*["']?\s*[=:]\s*["']?)
      (?P<named>[0-9a-f]{40})\b
    """
"""Shapes that everybody knows; of a match with the group `named` only that is the token."""

_NAMED = r"(?i:TOKEN|API_KEY|SECRET|PASSWORD)\Z"
_KNOWN = (("wandb", "wandb"), ("hf_", "huggingface"), ("hugging", "huggingface"))


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


def check_secrets(names: Iterable[str]) -> Iterator[Fault]:
    """Names of tokens; what is none may be the token itself, and is not shown."""
    for number, name in enumerate(names):
        if re.search(SHAPES, f"token={name}") or _random(name):
            known = _secret("", name)
            yield Fault(
                code="secret",
                says="is a token; a run file names tokens and never holds them",
                value=json.dumps(known) if known else "",
                notes=("a token that stood in a file is best made anew",),
                path=(number,),
                hide=True,
            )
        elif not is_name(name):
            yield Fault(code="name", says="is not a name", notes=(NAME_RULE,), path=(number,), hide=True)


def _random(text: str) -> bool:
    """Letters and digits without an end, as nobody names anything."""
    return len(text) >= 24 and text.isalnum() and not text.isalpha()


def unknown_secrets(names: Iterable[str], settings: Collection[str]) -> Iterator[Fault]:
    """A warning for each name that neither hpctrain nor the user's settings know."""
    known = {*settings, *(name for _, name in _KNOWN)}
    for number, name in enumerate(names):
        if name not in known:
            near = nearest(name, known)
            meant = f"; {json.dumps(near[0])} is" if near else ""
            own = f'[secrets]\n{name} = {{ file = "~/.config/{name}-token" }}'
            yield Fault(
                code="unknown-name",
                message=f"no secret {json.dumps(name)} is known{meant}",
                hint=json.dumps(near[0]) if near else own,
                notes=() if near else ("the table stands in your settings, never in the run file",),
                path=("secrets", number),
                fatal=False,
            )


def _secret(key: str, value: str) -> str:
    """The secret that sets this variable."""
    said = f"{key} {value}".lower()
    return next((name for part, name in _KNOWN if part in said), key.lower())
