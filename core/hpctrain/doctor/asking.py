"""Asking a machine: every program has a limit of its own, and all of them together have one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from hpctrain.doctor.question import Answer, Question
from hpctrain.errors import HpctrainError, NotReachable, TimedOut
from hpctrain.run.system.tools import Tools

SECONDS = 45
"""For all questions; with the start of Python and the end of what hung, it stays below a minute."""
LEAST = 0.2
"""What is left for a question that is still asked."""


class Asker:
    """Asks once each; what hung once is not waited for again. With more time in all, each may take longer."""

    def __init__(
        self, tools: Tools, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tools = tools
        self._clock = clock
        self._until = clock() + seconds
        self._patience = max(1.0, seconds / SECONDS)
        self._slow: set[str] = set()

    def answers(self, questions: Iterable[Question]) -> Iterator[tuple[Question, Answer]]:
        """Each question with its answer, one after the other."""
        for question in questions:
            yield question, self._answer(question) if question.argv else Answer()

    def _answer(self, question: Question) -> Answer:
        program = question.argv[0]
        subject = question.hangs or program
        if subject in self._slow:
            return Answer(fault=f"{subject} did not answer before")
        left = self._until - self._clock()
        if left < LEAST:
            return Answer(fault="no time was left for it")
        try:
            done = self._tools.run(
                question.argv,
                input=question.given or None,
                timeout=min(question.seconds * self._patience, left),
                ok=range(-64, 256),
                inherit=question.inherit,
            )
        except TimedOut as error:
            self._slow.add(subject)
            return Answer(fault=_reason(error))
        except NotReachable as error:
            return Answer(fault=f"{program} is not here" if _is_missing(error) else _reason(error))
        except (HpctrainError, OSError) as error:
            return Answer(fault=_reason(error))
        return Answer(out=done.out, err=done.err, code=done.code)


def _is_missing(error: HpctrainError) -> bool:
    return any(problem.code == "not-here" for problem in error.problems)


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
