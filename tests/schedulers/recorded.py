"""Answers of a real OpenPBS, by file and name, and a runner that gives them again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from hpctrain.run.system.tools import Tools

HERE = Path(__file__).parent / "openpbs"


@frozen
class Answer:
    """One call and what it answered."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str


def entries(file: str) -> dict[str, dict[str, Any]]:
    """All of one file, by name."""
    return {entry["name"]: entry for entry in json.loads((HERE / f"{file}.json").read_text())}


def answer(file: str, name: str) -> Answer:
    """One recorded answer."""
    entry = entries(file)[name]
    return Answer(tuple(entry["argv"]), entry["exit"], entry["stdout"], entry["stderr"])


class Recorded(Tools):
    """A runner whose answers are chosen by `say`; it keeps what it was asked."""

    def __init__(self, say: Callable[[tuple[str, ...]], Answer]) -> None:
        super().__init__({})
        self.say = say
        self.asked: list[tuple[str, ...]] = []

    def run(self, argv: Sequence[str], **_: Any) -> Any:
        self.asked.append(tuple(argv))
        return self.say(tuple(argv))


def always(file: str, name: str) -> Recorded:
    """The same answer to everything."""
    said = answer(file, name)
    return Recorded(lambda _: said)
