"""Whether everything inside a hook's answer is of the type that its class says.

The annotations of the model are the only list of types. A mistake found here names its author; later it
would be a strange line in a script.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from functools import cache
from typing import Any

import attrs

from hpctrain.hooks import scan
from hpctrain.model.fields import Form, Kind, fields_of
from hpctrain.model.job import JobFiles
from hpctrain.model.layer import EnvVar, Layer, Module
from hpctrain.model.names import NAME_RULE, is_name, is_variable
from hpctrain.model.step import Step
from hpctrain.model.words import Line, Var, Word, words_in

_NOUNS: Mapping[Any, tuple[str, str]] = {
    Word: ("word", "words"),
    Line: ("line (Cmd or Raw)", "lines (Cmd or Raw)"),
    str: ("string", "strings"),
    int: ("whole number", "whole numbers"),
    float: ("number", "numbers"),
    bool: ("truth value", "truth values"),
}
"""Types that people call otherwise than Python does: one and several."""


class WrongValue(TypeError):
    """Something inside an answer is of another type than its class says."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message, self.path = message, ""

    def under(self, part: str) -> WrongValue:
        """This error with `part`, the place inside the outer value, in front of its path."""
        self.path = part + self.path
        return self

    def __str__(self) -> str:
        return f"{self.path} {self.message}"


def check(value: Any) -> None:
    """Raise WrongValue for the first mistake inside a value of the model."""
    try:
        _fields(value)
    except WrongValue as error:
        raise error.under(type(value).__name__) from None


def _fields(value: Any) -> None:
    cls: Any = type(value)
    for name, kind in _kinds(cls):
        try:
            _judge(getattr(value, name), kind)
        except WrongValue as error:  # noqa: PERF203  (the field is part of the message)
            raise error.under(f".{name}") from None
    if cls in _RULES:
        _RULES[cls](value)


@cache
def _kinds(cls: Any) -> tuple[tuple[str, Kind], ...]:
    """The fields of a class that can be wrong."""
    fields = fields_of(cls).values() if attrs.has(cls) else ()
    return tuple((field.name, field.kind) for field in fields if field.kind.form is not Form.ANYTHING)


def _judge(value: Any, kind: Kind) -> None:
    if value is not None or not kind.optional:
        _JUDGES[kind.form](value, kind)


def _single(value: Any, kind: Kind) -> None:
    if type(value) is kind.type is str:
        return
    if not isinstance(value, _classes(kind)) or (isinstance(value, bool) and kind.type is not bool):
        example = _example(value, kind)
        needed = f"{_article(_noun(kind))} is needed"
        raise WrongValue(f"is {_describe(value)}; {needed}" + (f": {example}" if example else ""))
    _fields(value)


def _classes(kind: Kind) -> tuple[type, ...]:
    """What a value may be an instance of."""
    if kind.form is Form.UNION:
        return tuple(part.type for part in kind.parts)
    return (float, int) if kind.type is float else (kind.type,)


def _many(value: Any, kind: Kind) -> None:
    container = Set if kind.container is frozenset else kind.container
    if not isinstance(value, container):
        noun, example = ("set", "") if container is Set else ("tuple", _as_tuple(value, kind.item))
        needed = f"a {noun} of {_noun(kind.item, plural=True)} is needed"
        raise WrongValue(f"is {_describe(value)}; {needed}{example}")
    for number, item in enumerate(value):
        try:
            _judge(item, kind.item)
        except WrongValue as error:  # noqa: PERF203  (the index is part of the message)
            raise error.under(f"[{number}]") from None


def _mapping(value: Any, kind: Kind) -> None:
    if not isinstance(value, Mapping):
        raise WrongValue(f"is {_describe(value)}; a dict is needed")
    for key, item in value.items():
        try:
            if not isinstance(key, str):
                raise WrongValue(f"has {_describe(key)} as its key; a string is needed")  # noqa: TRY301
            _judge(item, kind.item)
        except WrongValue as error:  # noqa: PERF203  (the key is part of the message)
            raise error.under(f'["{key}"]') from None


_JUDGES: Mapping[Form, Callable[[Any, Kind], None]] = {
    Form.ANYTHING: lambda _, __: None,
    Form.FOREIGN: lambda _, __: None,
    **dict.fromkeys((Form.PLAIN, Form.CHOICE, Form.TABLE, Form.UNION), _single),
    Form.MANY: _many,
    Form.MAPPING: _mapping,
}


def _example(value: Any, kind: Kind) -> str:
    """What was probably meant, as Python; empty when nobody can tell."""
    if kind.type in (str, Word) and type(value) in (int, float):
        return f'"{value}"'
    if kind.type == Line and isinstance(value, str):
        return f"Cmd.of({', '.join(map(_quoted, value.split()))})"
    if isinstance(value, _classes(kind)):
        return _quoted(value) if isinstance(value, str) else _code_for(value)
    return str(next(iter(kind.type))) if kind.form is Form.CHOICE else ""


def _as_tuple(value: Any, kind: Kind) -> str:
    """What was probably meant, as a tuple."""
    if isinstance(value, list):
        return ": tuple(...)"
    example = _example(value, kind)
    return f": ({example},)" if example else ""


def _code_for(value: Any) -> str:
    return f"{type(value).__name__}(...)" if attrs.has(type(value)) else repr(value)


def _quoted(text: str) -> str:
    return '"' + (text if len(text) <= 40 else f"{text[:37]}...") + '"'


def _describe(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    words = {str: "string", int: "number", float: "number", bool: "truth value"}
    return _article(words.get(type(value), type(value).__name__))


def _noun(kind: Kind, *, plural: bool = False) -> str:
    if kind.type in _NOUNS:
        return _NOUNS[kind.type][plural]
    return str(getattr(kind.type, "__name__", kind.type))


def _article(noun: str) -> str:
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
        actions = ", ".join(Module.ACTIONS)
        raise WrongValue(f'is "{value.action}"; one of {actions} is needed').under(".action")


def _layer(value: Layer) -> None:
    """Words for a scheduler whose name is mistyped would reach none."""
    for table in ("ask", "starter"):
        for key in getattr(value, table):
            schedulers = scan.names("schedulers")
            if key not in schedulers:
                from difflib import get_close_matches

                near = get_close_matches(key, schedulers, 1)
                if near:
                    error = WrongValue(f'is for no scheduler that is installed; the nearest is "{near[0]}"')
                    raise error.under(f'.{table}["{key}"]')


def _job_files(value: JobFiles) -> None:
    """Files that stay in the run directory, a script for the job, and a job that can be found by its tag."""
    for path in value.files:
        if path.startswith("/") or ".." in path.split("/"):
            raise WrongValue(f'has "{path}", which is not in the run directory').under(".files")
    if not any(path.startswith("steps/") and path.endswith("/job.sh") for path in value.files):
        raise WrongValue("has no steps/STEP/job.sh; step_files writes it").under(".files")
    if Var("HPC_TAG") not in words_in(value.submit):
        error = WrongValue('has no Var("HPC_TAG"), by which a job is found whose id got lost')
        raise error.under(".submit")


_RULES: Mapping[type, Callable[[Any], None]] = {
    EnvVar: _env_var,
    Step: _named,
    Module: _module,
    Layer: _layer,
    JobFiles: _job_files,
}
