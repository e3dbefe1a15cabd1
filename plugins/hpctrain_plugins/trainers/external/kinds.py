"""Types of a configuration's values, and what is said when one does not fit.

A kind is `int`, `float`, `text`, `truth`, `list`, `table`, `any`, or the words a value may be with `|`
between them. A `?` behind it allows null.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hpctrain_plugins.trainers.external.config import Config, Fault
from hpctrain_plugins.trainers.yaml_file import Path, Trap, number

_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "text": (str,),
    "truth": (bool,),
    "list": (list,),
    "table": (dict,),
}
_KIND_NAMES = {
    "int": "a whole number",
    "float": "a number",
    "text": "text",
    "truth": "true or false",
    "list": "a list",
    "table": "a table",
}


def fits(value: Any, kind: str) -> bool:
    """Whether `value` is of `kind`."""
    base = kind.removesuffix("?")
    if value is None:
        return kind != base or base == "any"
    if base == "any":
        return True
    if base not in _TYPES:
        return isinstance(value, str) and value in base.split("|")
    if isinstance(value, bool):
        return base == "truth"
    return isinstance(value, _TYPES[base])


def misfit(path: Path, value: Any, kind: str) -> Fault:
    """The fault of a value that is not of `kind`."""
    base = kind.removesuffix("?")
    expected = _KIND_NAMES.get(base) or f"one of {', '.join(base.split('|'))}"
    current = "null" if value is None else repr(value) if isinstance(value, str) else str(value)
    near = _near(value, base.split("|")) if isinstance(value, str) and "|" in base else ""
    return Fault(
        code="trainer-type",
        message=f"{path[-1]} is {current}; {expected} is needed",
        path=path,
        hint=f"{path[-1]}: {near}" if near else "",
    )


def unknown(path: Path, keys: Mapping[str, Any]) -> Fault:
    """The fault of a key that the trainer does not have."""
    message = f'unknown key "{path[-1]}"'
    return Fault(code="trainer-key", message=message, path=path, hint=_near(str(path[-1]), keys))


def _near(word: str, candidates: Iterable[str]) -> str:
    from difflib import get_close_matches  # only a wrong word needs it

    return next(iter(get_close_matches(word, list(candidates), 1)), "")


def trap_faults(config: Config, kind_of: Mapping[Path, str], *, converts: bool = False) -> Iterator[Fault]:
    """What YAML 1.1 misreads. `converts`: the trainer makes numbers of text by itself."""
    for path, trap in config.traps():
        fault = _trapped(path, trap, kind_of.get(path, "").removesuffix("?"), converts)
        if fault is not None:
            yield fault


def _trapped(path: Path, trap: Trap, kind: str, converts: bool) -> Fault | None:
    name, word = path[-1], trap.word
    if trap.kind == "number" and kind != "text":
        message = f"{name} is the text '{word}': a number with an exponent needs a dot and a sign in YAML 1.1"
        return _fault(path, message, number(word), fatal=not converts)
    if trap.kind == "truth" and kind != "truth":
        truth = word.lower() in ("yes", "on", "y")
        message = f"{name} is {truth}: YAML 1.1 reads the word {word} as a truth value"
        return _fault(path, message, f'"{word}"', fatal=kind not in ("", "any"))
    if trap.kind == "time":
        message = f"{name} is {_seconds(word)}: YAML 1.1 counts {word} to the base of 60"
        return _fault(path, message, f'"{word}"', fatal=True)
    if trap.kind == "octal":
        message = f"{name} is {int(word.replace('_', ''), 8)}: YAML 1.1 reads {word} to the base of 8"
        return _fault(path, message, f'"{word}"', fatal=False)
    if trap.kind == "date":
        message = f"{name} is a date: YAML 1.1 does not read {word} as text"
        return _fault(path, message, f'"{word}"', fatal=kind == "text")
    return None


def _fault(path: Path, message: str, value: str, *, fatal: bool) -> Fault:
    return Fault(code="yaml-trap", message=message, path=path, hint=f"{path[-1]}: {value}", fatal=fatal)


def _seconds(word: str) -> float:
    total = 0.0
    for part in word.replace("_", "").lstrip("+-").split(":"):
        total = total * 60 + float(part)
    return int(total) if total.is_integer() else total
