"""Failures of any program on such machines, from `failures.toml`: what a log says, its cause, its cure.

A row has a `pattern`, a `signal` that ended a process, with the `words` that shells and schedulers have for
it, or an `exit` code; any of them is enough.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hpctrain.model.job import Rule
from hpctrain.runfile.reading.text import read_toml

CERTAIN, LIKELY, CONSEQUENCE, GUESS = "certain", "likely", "consequence", "guess"
WEAK = (CONSEQUENCE, GUESS)
"""Shown where nothing else is known: how ranks end because another did, and what an exit code alone tells."""
RANK = r"^(?:\[\w+\]: ?|\d+: ?)?"
"""What launchers put in front of a rank's lines; `{rank}` in a pattern."""
ENDED = "how it ended"
"""Where the exit code and the scheduler's reason stand, as lines."""
TABLE = Path(__file__).with_name("failures.toml")


@cache
def rules() -> tuple[Rule, ...]:
    """The rows of the table, in its order: of two that are equally sure the first is told."""
    return tuple(map(_rule, read_toml(TABLE).data["rule"]))


def _rule(row: Mapping[str, Any]) -> Rule:
    return Rule(
        name=row["name"],
        pattern="|".join(_patterns(row)),
        cause=row["cause"],
        fix=row["fix"],
        sure=row["sure"],
        page=row["page"],
        source="core",
    )


def _patterns(row: Mapping[str, Any]) -> Iterator[str]:
    if "pattern" in row:
        yield row["pattern"].replace("{rank}", RANK)
    if "exit" in row:
        yield _exit(row["exit"])
    if "signal" in row:
        number, words = row["signal"], row["words"]
        yield _exit(128 + number)
        yield rf"\bSignal {number} \({signal.Signals(number).name}\) received by PID"  # torchrun
        yield rf"^\w+: error: \S+: tasks? [-\d,\[\]]+: {words}\b"  # Slurm
        yield rf"(?:ExitCode=|^.*\b[A-Z]{{4,}}\+? +)0:{number}\b"  # Slurm's accounting
        yield rf": line \d+: +\d+ {words}\b"  # bash


def _exit(code: int) -> str:
    return rf"^exit code {code}$|\bexit(?:ed with exit)? code:? {code}\b"
