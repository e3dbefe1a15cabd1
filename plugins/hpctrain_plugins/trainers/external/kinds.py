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
_SAID = {
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
    wanted = _SAID.get(base) or f"one of {', '.join(base.split('|'))}"
    shown = "null" if value is None else repr(value) if isinstance(value, str) else str(value)
    near = _near(value, base.split("|")) if isinstance(value, str) and "|" in base else ""
    return Fault(
        code="trainer-type",
        says=f"{path[-1]} is {shown}; {wanted} is needed",
        path=path,
        hint=f"{path[-1]}: {near}" if near else "",
    )


def unknown(path: Path, known: Mapping[str, Any]) -> Fault:
    """The fault of a key that the trainer does not have."""
    says = f'unknown key "{path[-1]}"'
    return Fault(code="trainer-key", says=says, path=path, hint=_near(str(path[-1]), known))


def _near(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # only a wrong word needs it

    return next(iter(get_close_matches(word, list(known), 1)), "")


def trap_faults(config: Config, kind_of: Mapping[Path, str], *, converts: bool = False) -> Iterator[Fault]:
    """What YAML 1.1 misreads. `converts`: the trainer makes numbers of text by itself."""
    for path, trap in config.traps():
        fault = _trapped(path, trap, kind_of.get(path, "").removesuffix("?"), converts)
        if fault is not None:
            yield fault


def _trapped(path: Path, trap: Trap, kind: str, converts: bool) -> Fault | None:
    name, said = path[-1], trap.said
    if trap.kind == "number" and kind != "text":
        says = f"{name} is the text '{said}': a number with an exponent needs a dot and a sign in YAML 1.1"
        return _fault(path, says, number(said), fatal=not converts)
    if trap.kind == "truth" and kind != "truth":
        truth = said.lower() in ("yes", "on", "y")
        says = f"{name} is {truth}: YAML 1.1 reads the word {said} as a truth value"
        return _fault(path, says, f'"{said}"', fatal=kind not in ("", "any"))
    if trap.kind == "time":
        says = f"{name} is {_seconds(said)}: YAML 1.1 counts {said} to the base of 60"
        return _fault(path, says, f'"{said}"', fatal=True)
    if trap.kind == "octal":
        says = f"{name} is {int(said.replace('_', ''), 8)}: YAML 1.1 reads {said} to the base of 8"
        return _fault(path, says, f'"{said}"', fatal=False)
    if trap.kind == "date":
        says = f"{name} is a date: YAML 1.1 does not read {said} as text"
        return _fault(path, says, f'"{said}"', fatal=kind == "text")
    return None


def _fault(path: Path, says: str, value: str, *, fatal: bool) -> Fault:
    return Fault(code="yaml-trap", says=says, path=path, hint=f"{path[-1]}: {value}", fatal=fatal)


def _seconds(said: str) -> float:
    total = 0.0
    for part in said.replace("_", "").lstrip("+-").split(":"):
        total = total * 60 + float(part)
    return int(total) if total.is_integer() else total
