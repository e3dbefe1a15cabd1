"""What strictness finds: a fault has a path inside the data; its file is known to the layers."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterable
from typing import Any

import attrs
from attrs import frozen

from hpctrain.errors import Problem, Span
from hpctrain.runfile.keys import Key, Keys, dotted, named, quoted


@frozen(kw_only=True)
class Fault:
    """One mistake at `path`: `KEY says`, or `message` where the key is not the subject.

    `value` is the right-hand side to paste after the key; `hint` replaces the whole line.
    """

    code: str
    complaint: str = ""
    message: str = ""
    value: str = ""
    hint: str = ""
    notes: tuple[str, ...] = ()
    path: Keys = ()
    at_key: bool = False
    fatal: bool = True
    table: bool = False
    """The hint names tables beside the one at `path`."""
    hide: bool = False
    """The text of its place is not shown: it holds a secret."""

    def under(self, key: Key) -> Fault:
        """This fault with the key of the table, or the number in the array, that holds it in front of its
        path."""
        return attrs.evolve(self, path=(key, *self.path))

    def problem(self, span: Span | None) -> Problem:
        """The fault with its place, as every command shows it."""
        if self.hide and span is not None:
            option, equals, _ = span.file.partition("=") if not span.line else (span.file, "", "")
            span = attrs.evolve(span, text="", file=f"{option}{equals}***" if equals else option)
        key = named(self.path)
        hint = self.hint
        if self.table and hint:
            hint = ", ".join(f"[{dotted((*self.path[:-1], word))}]" for word in hint.split(", "))
        assign = "" if self.path and isinstance(self.path[-1], int) else f"{key} = "
        return Problem(
            code=self.code,
            message=self.message or f"{key} {self.complaint}",
            where=dotted(self.path),
            hint=hint or (f"{assign}{self.value}" if self.value else ""),
            notes=self.notes,
            fatal=self.fatal,
            span=span,
        )


Check = Callable[[Any], Iterable[Fault]]
"""A rule of one class: what its types cannot say."""


class Mismatch(Exception):
    """Data that does not fit its type, with every fault in it."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        super().__init__("data does not fit its type")
        self.faults = tuple(faults)


def wrong_type(value: object, needed: str, example: str = "") -> Mismatch:
    """`KEY is 90, a bare number; a duration is needed`."""
    kind = kind_of(value)
    display = shown_as(value)
    subject = f"{display}, {kind}" if display else kind
    complaint = f"is {subject}; {needed} is needed"
    return Mismatch([Fault(code="wrong-type", complaint=complaint, value=example)])


def wrong_value(value: object, needed: str, example: str = "") -> Mismatch:
    """`KEY is "cudda"; one of cuda, rocm, cpu is needed`."""
    complaint = f"is {shown_as(value) or kind_of(value)}; {needed}"
    return Mismatch([Fault(code="wrong-value", complaint=complaint, value=example)])


def kind_of(value: object) -> str:
    """What a TOML value is, in words."""
    if isinstance(value, bool):
        return "a truth value"
    for kind, words in _KINDS.items():
        if isinstance(value, kind):
            return words
    return type(value).__name__


_KINDS: dict[type, str] = {
    int: "a bare number",
    float: "a bare number",
    str: "a string",
    dict: "a table",
    list: "an array",
    tuple: "an array",
    datetime.date: "a date",
    datetime.time: "a time of day",
}


def shown_as(value: object) -> str:
    """A scalar as TOML writes it, clipped; empty for tables and arrays."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value if len(value) <= 60 else f"{value[:57]}...", ensure_ascii=False)
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return "" if isinstance(value, (dict, list, tuple)) else str(value)


def missing_key(key: str) -> Fault:
    """A key that must be there."""
    return Fault(code="missing-key", complaint="is missing", path=(key,), at_key=True)


def unknown_key(key: str, near: tuple[str, ...], legal: Iterable[str], *, table: bool = False) -> Fault:
    """A key that its table does not have, with the nearest that it has."""
    notes = () if near else (f"legal here: {', '.join(sorted(legal))}",)
    message = f"unknown key {json.dumps(key, ensure_ascii=False)}"
    hint = ", ".join(word if "." in word and word not in legal else quoted(word) for word in near)
    return Fault(
        code="unknown-key", message=message, hint=hint, notes=notes, path=(key,), at_key=True, table=table
    )
