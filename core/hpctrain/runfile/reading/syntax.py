"""What tomllib says about a text that is not TOML, in our words and with its place."""

from __future__ import annotations

import re

from hpctrain.errors import Problem, Span
from hpctrain.runfile.keys import Keys, dotted, named
from hpctrain.runfile.reading.positions import span_at, statements

_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")
_TWICE = ("Cannot overwrite", "Duplicate inline", "Cannot declare", "Cannot mutate")
_BARE = re.compile(r"\s*([A-Za-z0-9_.-]+)\s*=\s*([A-Za-z0-9][^\"'\[\]{}#,=\n]*?)\s*(?:#.*)?\Z")
_OURS = {
    "invalid value": 'a value is needed here, such as "text", 1, true, [...] or {...}',
    "illegal character '\\n'": "the line ends before its string does",
}
_MAX_DIGITS = 4300
"""More digits than this are refused by Python itself, without a place."""


def syntax_problem(error: ValueError, text: str, file: str) -> Problem:
    """The problem for what the parser raised."""
    reason = str(error)
    digits = re.search(rf"\d{{{_MAX_DIGITS},}}", text) if reason.startswith("Exceeds") else None
    if digits:
        message = f"a whole number of {len(digits.group())} digits; at most 64 bits are allowed"
        span = span_at(file, text, *digits.span())
        return Problem(code="number-range", message=message, span=span)
    if reason.startswith(_TWICE) and (twice := _twice(text)):
        return _duplicate(twice, text, file)
    place = _PLACE.search(reason)
    message = reason[: place.start()] if place else reason
    message = message[:1].lower() + message[1:]
    span = _span(place, text, file)
    return Problem(code="toml", message=_OURS.get(message, message), span=span, hint=_quote_it(span.text))


def _span(place: re.Match[str] | None, text: str, file: str) -> Span:
    if place is None or place.group(1) is None:
        start = max(0, len(text.rstrip("\n")) - 1)
    else:
        lines = text.split("\n")[: int(place.group(1)) - 1]
        start = sum(len(line) + 1 for line in lines) + int(place.group(2)) - 1
    return span_at(file, text, start, start + 1)


def _quote_it(line: str) -> str:
    """`time = 90m` lacks quotes: the mistake that a newcomer makes first."""
    match = _BARE.match(line)
    if match is None or match.group(2) in ("true", "false", "inf", "nan"):
        return ""
    value = match.group(2)
    if value in ("True", "False"):
        return f"{match.group(1)} = {value.lower()}"
    return "" if re.fullmatch(r"[\d_.eE+-]+", value) else f'{match.group(1)} = "{value}"'


def _twice(text: str) -> tuple[Keys, int, int, int] | None:
    """The first key path that is said a second time: path, first start, second start and end."""
    starts: dict[Keys, int] = {}
    for path, place, is_explicit in statements(text):
        if is_explicit and path in starts:
            return (path, starts[path], *place.key)
        if is_explicit:
            starts[path] = place.key[0]
    return None


def _duplicate(twice: tuple[Keys, int, int, int], text: str, file: str) -> Problem:
    path, first, start, stop = twice
    note = f"first at line {span_at(file, text, first).line}"
    return Problem(
        code="duplicate-key",
        message=f"{named(path)} appears twice",
        where=dotted(path),
        notes=(note,),
        span=span_at(file, text, start, stop),
    )
