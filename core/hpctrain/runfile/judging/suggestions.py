"""What somebody meant who wrote a string, or another tool's word, where one key of several is needed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpctrain.model.run import Package
from hpctrain.runfile.judging.rules import ONE_OF

_SPACED = re.compile(r"([A-Za-z0-9._-]+)\s+v?(\d[\w.]*)\Z", re.ASCII)
_HUB = re.compile(r"[\w.-]+(/[\w.-]+)?\Z", re.ASCII)
_ADDRESS = re.compile(r"(?P<git>git\+)?(?P<url>https?://[^@#]+|ssh://[^#]+?)(?:@(?P<rev>[^#/]+))?(?:#.*)?\Z")


def correction(value: object, cls: type) -> str:
    """The table, or the package, that this string says in another way; "" where nobody can tell."""
    keys = ONE_OF.get(cls, ())
    if not isinstance(value, str) or not keys:
        return ""
    spaced = _SPACED.match(value)
    if cls is Package and spaced:
        return json.dumps(f"{spaced[1]}=={spaced[2]}")
    table = _table(value, keys)
    return "{ " + ", ".join(f"{k} = {json.dumps(v)}" for k, v in table.items()) + " }" if table else ""


def _table(text: str, keys: tuple[str, ...]) -> dict[str, str]:
    address = _ADDRESS.match(text)
    if address and (address["git"] or address["url"].endswith(".git") or "url" not in keys):
        rev = address["rev"]
        return {"git": address["url"], **({"rev": rev} if rev else {})}
    if address:
        return {"url": text}
    if text.startswith((".", "/", "~")):
        return {"path": text}
    return {"hub": text} if "hub" in keys and _HUB.match(text) else {}


def origins(table: Mapping[str, Any], cls: type) -> Iterator[str]:
    """Which keys there are to choose from, where a table has none of them."""
    keys = ONE_OF.get(cls, ())
    if keys and not any(key in table for key in keys):
        yield f"one of {', '.join(keys[:-1])} or {keys[-1]} is needed"


def as_array(value: object, inner: Any) -> str:
    """An array of what stands there alone."""
    if inner is Package and isinstance(value, dict):
        pins = [f"{name}=={pin}" for name, pin in value.items() if isinstance(pin, str) and pin[:1].isdigit()]
        return json.dumps(pins if pins and len(pins) == len(value) else ["trl==0.23.1"])
    if not isinstance(value, str) or '"' in value:
        return ""
    if inner is not str or " " not in value:
        return f'["{value}"]'
    import shlex  # only a mistake pays for this import

    try:
        return json.dumps(shlex.split(value), ensure_ascii=False)
    except ValueError:  # a quote that is left open
        return ""
