"""What a command found: lines for people, values for programs, faults with their places."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from hpctrain_tokens.faults import DataError, Fault
from hpctrain_tokens.prepare import Tell

Run = Callable[[argparse.Namespace, Tell], "Answer"]


@dataclass
class Answer:
    """`name` is the command; with `faults` the command ends as one that found mistakes."""

    name: str
    lines: list[str]
    values: dict[str, Any]
    faults: list[Fault] = field(default_factory=list)
    next: str = ""


class Parser(argparse.ArgumentParser):
    """Takes whole names of options only, and says a mistake like any other."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "allow_abbrev": False})

    @property
    def long_options(self) -> list[str]:
        """The options that it takes, as they are written out."""
        return [word for action in self._actions for word in action.option_strings if word.startswith("--")]

    def error(self, message: str) -> NoReturn:
        """Raise; the caller knows how errors look."""
        raise DataError.of("usage", message.replace("\n", " "), hint=f"{self.prog} --help")


def words(text: str) -> tuple[str, ...]:
    """The words of a list with commas: `a,b`."""
    return tuple(word for word in text.split(",") if word)


def natural(text: str) -> int:
    """A whole number that is not below zero."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 0 up")
    return int(text)


def amount(number: float) -> str:
    """A count for people: 51,838, 118.4 M."""
    for size, letter in ((1e9, "G"), (1e6, "M")):
        if number >= size:
            return f"{number / size:.1f} {letter}"
    return f"{number:,.0f}"


def size(count: float) -> str:
    """A number of bytes for people: `1.5 GB`."""
    for power, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= power:
            return f"{count / power:.1f} {unit}"
    return f"{count:.0f} B"


def plural(number: int, word: str) -> str:
    """A count with its noun: `1 row`, `2 rows`."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
