"""One strict hook for each simple type: nothing is coerced, and the right way is in the hint."""

from __future__ import annotations

import enum
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from hpctrain.model.duration import Duration
from hpctrain.runfile.faults import wrong_type, wrong_value
from hpctrain.runfile.keys import nearest

_SECONDS = {"w": 7 * 86400, "d": 86400, "h": 3600, "m": 60, "s": 1}
_WORDED = r"(\d{1,6}(?:\.\d+)?)\s*(w|d|h|m|s)(?:eeks?|ays?|ours?|rs?|inutes?|ins?|econds?|ecs?)?(?![a-z])"
_TRUTH = {"true": "true", "yes": "true", "false": "false", "no": "false"}


def is_number(value: object) -> bool:
    """Whether this is a TOML number (bool is an int to Python only)."""
    return type(value) in (int, float)


def structure_str(value: Any, _: object) -> str:
    if type(value) is not str:
        example = f'"{value}"' if is_number(value) or hasattr(value, "isoformat") else ""
        raise wrong_type(value, "a string", example)
    return value


def structure_bool(value: Any, _: object) -> bool:
    if type(value) is not bool:
        raise wrong_type(value, "true or false", _TRUTH.get(str(value).lower(), ""))
    return value


def structure_int(value: Any, _: object) -> int:
    if type(value) is not int:
        text = str(int(value)) if type(value) is float and value.is_integer() else str(value)
        raise wrong_type(value, "a whole number", text if text.lstrip("-").isdecimal() else "")
    return value


def structure_float(value: Any, _: object) -> float:
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


def structure_duration(value: Any, _: object) -> Duration:
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


def structure_choice(value: Any, kind: Any) -> Any:
    """An enum by its value, or a Literal."""
    if get_origin(kind) is Literal:
        legal: dict[Any, Any] = {choice: choice for choice in get_args(kind)}
    else:
        legal = {member.value: member for member in kind}
    if type(value) in map(type, legal) and value in legal:
        return legal[value]
    words = [_said(choice) for choice in legal if choice != ""]
    near = nearest(value, filter(None, map(str, legal))) if isinstance(value, str) else ()
    raise wrong_value(value, f"{one_of(words)} is needed", json.dumps(near[0]) if near else "")


READERS: Mapping[Any, Callable[[Any, Any], Any]] = {
    str: structure_str,
    bool: structure_bool,
    int: structure_int,
    float: structure_float,
    Duration: structure_duration,
}
"""What reads a value of each plain type."""


def _said(choice: Any) -> str:
    return choice if isinstance(choice, str) else json.dumps(choice)


def one_of(words: Sequence[str]) -> str:
    """`cuda, rocm or cpu`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def is_choice(kind: Any) -> bool:
    """Whether `structure_choice` reads this type."""
    return get_origin(kind) is Literal or (isinstance(kind, type) and issubclass(kind, enum.Enum))
