"""One strict reader for each plain type: nothing is coerced, and the right way is in the hint."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hpctrain.model.duration import Duration
from hpctrain.model.fields import Kind
from hpctrain.runfile.faults import wrong_type, wrong_value
from hpctrain.runfile.keys import nearest

_SECONDS = {"w": 7 * 86400, "d": 86400, "h": 3600, "m": 60, "s": 1}
_WORDED = r"(\d{1,6}(?:\.\d+)?)\s*(w|d|h|m|s)(?:eeks?|ays?|ours?|rs?|inutes?|ins?|econds?|ecs?)?(?![a-z])"
_TRUTH = {"true": "true", "yes": "true", "false": "false", "no": "false"}


def is_number(value: object) -> bool:
    """Whether this is a TOML number (bool is an int to Python only)."""
    return type(value) in (int, float)


def read_str(value: Any) -> str:
    if type(value) is not str:
        example = f'"{value}"' if is_number(value) or hasattr(value, "isoformat") else ""
        raise wrong_type(value, "a string", example)
    return value


def read_bool(value: Any) -> bool:
    if type(value) is not bool:
        raise wrong_type(value, "true or false", _TRUTH.get(str(value).lower(), ""))
    return value


def read_int(value: Any) -> int:
    if type(value) is not int:
        text = str(int(value)) if type(value) is float and value.is_integer() else str(value)
        raise wrong_type(value, "a whole number", text if text.lstrip("-").isdecimal() else "")
    return value


def read_float(value: Any) -> float:
    if not is_number(value):
        raise wrong_type(value, "a number", _number(value))
    if not math.isfinite(value):
        raise wrong_value(value, "a finite number is needed")
    return float(value)


def _number(value: object) -> str:
    try:
        return str(float(value)) if isinstance(value, str) and math.isfinite(float(value)) else ""
    except ValueError:
        return ""


def read_duration(value: Any) -> Duration:
    if type(value) is not str:
        minutes = value if type(value) is int and value > 0 else 90
        example = f'"{minutes}m"      also "1:30:00", "2d"'
        raise wrong_type(value, "a duration", example)
    try:
        return Duration.parse(value)
    except ValueError as error:
        needed = "more than zero" if "longer than" in str(error) else "a duration"
        example = _duration(value) or '"90m"      also "1:30:00", "2d"'
        raise wrong_value(value, f"{needed} is needed", example) from None


def _duration(text: str) -> str:
    """What `1 hour` or `1.5h` is here; empty when it is nothing of the kind."""
    lower = text.strip().lower()
    parts = re.findall(_WORDED, lower)
    if not parts or re.sub(_WORDED, "", lower).replace("and", "").strip(" ,"):
        return ""
    seconds = round(sum(float(number) * _SECONDS[unit] for number, unit in parts))
    return f'"{Duration(seconds).short}"' if seconds > 0 else ""


def read_choice(value: Any, kind: Kind) -> Any:
    """An enum by its value, or a Literal."""
    legal = kind.choices
    if type(value) in map(type, legal) and value in legal:
        return legal[value]
    words = [_text(choice) for choice in legal if choice != ""]
    near = nearest(value, filter(None, map(str, legal))) if isinstance(value, str) else ()
    raise wrong_value(value, f"{one_of(words)} is needed", json.dumps(near[0]) if near else "")


READERS: Mapping[Any, Callable[[Any], Any]] = {
    str: read_str,
    bool: read_bool,
    int: read_int,
    float: read_float,
    Duration: read_duration,
}
"""What reads a value of each plain type."""


def _text(choice: Any) -> str:
    return choice if isinstance(choice, str) else json.dumps(choice)


def one_of(words: Sequence[str]) -> str:
    """The words as an enumeration: `cuda, rocm or cpu`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
