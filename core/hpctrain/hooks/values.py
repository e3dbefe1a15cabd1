"""Whether everything inside a hook's answer is of the type that its class says.

The annotations of the model are the only list of types: they are read as text, because resolving them
costs more than a whole plan has. A mistake found here names its author; later it would be a strange
line in a script.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Set
from functools import cache
from typing import Any

import attrs

from hpctrain.errors import Problem, Span
from hpctrain.hooks import scan
from hpctrain.model.job import Allocation, JobFiles, JobState, Rule, State
from hpctrain.model.layer import At, Bind, EnvVar, File, How, Layer, Module, Quote
from hpctrain.model.names import NAME_RULE, is_name, is_variable
from hpctrain.model.step import After, Artifact, Launch, Need, Pin, Ranks, Step, When
from hpctrain.model.train import Layout, Numbers, Pattern, Train
from hpctrain.model.words import Cmd, Join, Loc, Raw, Secret, Var

Check = Callable[[Any], None]

_CLASSES: tuple[type, ...] = (
    *(
        Allocation,
        JobFiles,
        JobState,
        Rule,
        State,
        At,
        Bind,
        EnvVar,
        File,
        How,
        Layer,
        Module,
        Quote,
        After,
        Artifact,
    ),
    *(Launch, Need, Pin, Ranks, Step, When, Layout, Numbers, Pattern, Train, Cmd, Problem, Span),
)
TYPES: dict[str, tuple[type, ...]] = {
    **{cls.__name__: (cls,) for cls in _CLASSES},
    "str": (str,),
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "Word": (str, Var, Loc, Secret, Raw, Join),
    "Line": (Cmd, Raw),
}
"""What each name in an annotation stands for."""

_ALIASES = {"Asks": "Mapping[str, tuple[Word, ...]]"}
_SAID = {"str": "string", "int": "whole number", "float": "number", "bool": "truth value"}


class WrongValue(TypeError):
    """Something inside an answer is of another type than its class says."""

    def __init__(self, says: str) -> None:
        super().__init__(says)
        self.says, self.path = says, ""

    def under(self, part: str) -> WrongValue:
        """The same mistake, seen from the value around it."""
        self.path = part + self.path
        return self

    def __str__(self) -> str:
        return f"{self.path} {self.says}"


def check(value: Any) -> None:
    """Raise WrongValue for the first mistake inside a value of the model."""
    try:
        _fields(value)
    except WrongValue as error:
        raise error.under(type(value).__name__) from None


def _fields(value: Any) -> None:
    cls: Any = type(value)
    for name, field_check in _checks(cls):
        try:
            field_check(getattr(value, name))
        except WrongValue as error:  # noqa: PERF203  (the field is part of what is said)
            raise error.under(f".{name}") from None
    if cls in _RULES:
        _RULES[cls](value)


@cache
def _checks(cls: Any) -> tuple[tuple[str, Check], ...]:
    if not attrs.has(cls):
        return ()
    found = ((field.name, checker(str(field.type))) for field in attrs.fields(cls))
    return tuple((name, found_check) for name, found_check in found if found_check is not _anything)


@cache
def checker(annotation: str) -> Check:
    """What raises WrongValue for a value that does not fit `annotation`."""
    annotation = _ALIASES.get(annotation, annotation)
    if annotation == "Any":
        return _anything
    if annotation.endswith(" | None"):
        inner = checker(annotation.removesuffix(" | None"))
        return lambda value: None if value is None else inner(value)
    outer, _, rest = annotation.partition("[")
    if outer == "Mapping":
        return _mapping(checker(rest.removesuffix("]").partition(", ")[2]))
    if outer == "tuple":
        return _many(tuple, rest.removesuffix(", ...]"))
    if outer == "frozenset":
        return _many(Set, rest.removesuffix("]"))
    return _one(annotation)


def _anything(_: Any) -> None:
    return None


def _one(name: str) -> Check:
    kinds = TYPES[name]

    def one(value: Any) -> None:
        kind = type(value)
        if kind is kinds[0] and kind in _PLAIN:
            return
        if not isinstance(value, kinds) or (kind is bool and bool not in kinds):
            raise _wrong(value, name)
        _fields(value)

    return one


def _many(kind: Any, name: str) -> Check:
    inner = checker(name)

    def many(value: Any) -> None:
        if not isinstance(value, kind):
            said, example = ("tuple", _several(value, name)) if kind is tuple else ("set", "")
            raise WrongValue(f"is {_kind(value)}; a {said} of {_plural(name)} is needed{example}")
        for number, item in enumerate(value):
            try:
                inner(item)
            except WrongValue as error:  # noqa: PERF203  (the index is part of what is said)
                raise error.under(f"[{number}]") from None

    return many


def _mapping(inner: Check) -> Check:
    def mapping(value: Any) -> None:
        if not isinstance(value, Mapping):
            raise WrongValue(f"is {_kind(value)}; a dict is needed")
        for key, item in value.items():
            try:
                if not isinstance(key, str):
                    raise WrongValue(f"has {_kind(key)} as its key; a string is needed")  # noqa: TRY301
                inner(item)
            except WrongValue as error:  # noqa: PERF203  (the key is part of what is said)
                raise error.under(f'["{key}"]') from None

    return mapping


_PLAIN = (str, int, float, bool)


def _wrong(value: Any, name: str) -> WrongValue:
    example = _as(value, name)
    return WrongValue(f"is {_kind(value)}; {_a(_noun(name))} is needed" + (f": {example}" if example else ""))


def _as(value: Any, name: str) -> str:
    """What was probably meant, as Python; empty when nobody can tell."""
    if name in ("str", "Word") and type(value) in (int, float):
        return f'"{value}"'
    if name == "Line" and isinstance(value, str):
        return f"Cmd.of({', '.join(map(_quoted, value.split()))})"
    if isinstance(value, TYPES[name]):
        return _quoted(value) if isinstance(value, str) else _shown(value)
    if issubclass(TYPES[name][0], enum.Enum):
        return f"{name}.{next(iter(TYPES[name][0])).name}"  # type: ignore[call-overload]
    return ""


def _several(value: Any, name: str) -> str:
    """What was probably meant, as a tuple."""
    if isinstance(value, list):
        return ": tuple(...)"
    example = _as(value, name)
    return f": ({example},)" if example else ""


def _shown(value: Any) -> str:
    return f"{type(value).__name__}(...)" if attrs.has(type(value)) else repr(value)


def _quoted(text: str) -> str:
    return '"' + (text if len(text) <= 40 else f"{text[:37]}...") + '"'


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    words = {str: "string", int: "number", float: "number", bool: "truth value"}
    return _a(words.get(type(value), type(value).__name__))


def _noun(name: str) -> str:
    return {"Word": "word", "Line": "line (Cmd or Raw)"}.get(name) or _SAID.get(name, name)


def _plural(name: str) -> str:
    return {"Word": "words", "Line": "lines (Cmd or Raw)", "str": "strings"}.get(name, name)


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiouAEIOU' else 'a'} {noun}"


def _env_var(value: EnvVar) -> None:
    if not is_variable(value.name):
        raise WrongValue(f'is "{value.name}", not the name of an environment variable').under(".name")
    if not value.why.strip():
        raise WrongValue(f"is blank; say in a few words what {value.name} is for").under(".why")


def _named(value: Any) -> None:
    if not is_name(value.name):
        raise WrongValue(f'is "{value.name}", not {NAME_RULE}').under(".name")


def _module(value: Module) -> None:
    if value.action not in Module.ACTIONS:
        known = ", ".join(Module.ACTIONS)
        raise WrongValue(f'is "{value.action}"; one of {known} is needed').under(".action")


def _layer(value: Layer) -> None:
    """Words for a scheduler whose name is mistyped would never be said."""
    for table in ("ask", "starter"):
        for key in getattr(value, table):
            known = scan.names("schedulers")
            if key not in known:
                from difflib import get_close_matches

                near = get_close_matches(key, known, 1)
                if near:
                    error = WrongValue(f'is for no scheduler that is installed; the nearest is "{near[0]}"')
                    raise error.under(f'.{table}["{key}"]')


_RULES: dict[type, Check] = {EnvVar: _env_var, Step: _named, Module: _module, Layer: _layer}
