"""The values of an examination: a question to the machine, what was answered, what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from attrs import frozen

MOST = 160
"""Characters of an answer that are shown."""


class Verdict(Enum):
    """How a fact and the machine agree."""

    OK = "ok"
    DIFFERS = "differs"
    UNKNOWN = "not known"
    """The facts say nothing of it, or nothing that can be compared, or a login node cannot tell."""
    SILENT = "could not be asked"


@frozen(kw_only=True)
class Finding:
    """One line: a fact, and what the machine says of it."""

    area: str
    fact: str
    verdict: Verdict
    expected: str = ""
    found: str = ""
    source: str = ""
    """The id of the `[[source]]` that says what is expected."""
    todo: str = ""
    key: tuple[str, ...] = ()
    """Of a value that a file of facts can take over: its table, the row's name in a list of rows, the key."""
    value: str | int | float | None = None
    """What stands there today, as that file spells it."""


@frozen(kw_only=True)
class Answer:
    """What a program wrote, and how it ended."""

    out: str = ""
    err: str = ""
    code: int = 0
    fault: str = ""
    """Why there is no answer: the program is not here, or took too long."""


@frozen(kw_only=True)
class Question:
    """A program that tells of a fact, and what its answer means."""

    name: str
    """Its own in an examination, and the same in every one of the same facts."""
    area: str
    fact: str
    argv: tuple[str, ...]
    judge: Callable[[Answer], Iterable[Finding]]
    """What follows from an answer; a program that is not here or too slow never comes so far."""
    expected: str = ""
    source: str = ""
    seconds: float = 5
    hangs: str = ""
    """What is asked nothing more when this takes too long; empty: the program."""
    given: str = ""
    """What it reads from stdin: an address may hold a password, which no command line shows."""
    inherit: bool = False
    """The program sees all variables of the user's shell, as a command that is typed does."""
    silence: Verdict = Verdict.SILENT
    """What no answer means: UNKNOWN where a login node need not have the program."""
    todo: str = ""
    """What to do when there is no answer."""

    def finding(self, verdict: Verdict, text: str = "", todo: str = "") -> Finding:
        """The line of this question's own fact."""
        return Finding(
            area=self.area,
            fact=self.fact,
            verdict=verdict,
            expected=self.expected,
            found=text,
            source=self.source,
            todo=todo,
        )

    def unclear(self, answer: Answer) -> Finding:
        """The line of an answer that nobody understands."""
        text = first_line(answer.out) or first_line(answer.err) or "nothing"
        words = text.removeprefix(f"{self.argv[0]}: ")[:MOST]
        return self.finding(Verdict.SILENT, f"{self.argv[0]} said: {words}", self.todo)

    def findings(self, answer: Answer) -> tuple[Finding, ...]:
        """Every line that follows from `answer`: one at least."""
        if answer.fault and self.argv:
            return (self.finding(self.silence, answer.fault, self.todo),)
        return tuple(self.judge(answer)) or (self.unclear(answer),)


Examined = tuple[Finding, ...]


def stated(name: str, finding: Finding) -> Question:
    """A line that needs no program."""
    return Question(name=name, area=finding.area, fact=finding.fact, argv=(), judge=lambda _: (finding,))


def first_line(text: str) -> str:
    """The first line that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
