"""What a token looks like, and the refusal of one that stands in a run file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from hpctrain.runfile.faults import Fault

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


def _secret(key: str, value: str) -> str:
    """The secret that sets this variable."""
    said = f"{key} {value}".lower()
    return next((name for part, name in _KNOWN if part in said), key.lower())
