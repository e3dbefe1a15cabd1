"""What plugins find in the data of a run before anything is queued, and how far they are."""

from __future__ import annotations

from hpctrain.cli.out import Out
from hpctrain.errors import Problem, raise_fatal
from hpctrain.session import Session
from hpctrain.ui.progress import Line, Progress


class _Lines:
    """A line for each title, redrawn in place."""

    def __init__(self, out: Out) -> None:
        self._progress = None if out.flags.quiet or out.flags.json else Progress(out.err)
        self._lines: dict[str, Line] = {}

    def tell(self, title: str, done: int, total: int) -> None:
        if self._progress is None:
            return
        if title not in self._lines:
            self._lines[title] = self._progress.line(f"check {title}", "B")
        self._lines[title].update(done=done, total=total)
        if done >= total:
            self._lines.pop(title).end("ok")

    def end(self) -> None:
        for line in self._lines.values():
            line.end("FAIL")


def data_problems(out: Out, session: Session) -> tuple[Problem, ...]:
    """Everything that is wrong with the data that is here."""
    lines = _Lines(out)
    try:
        return session.check_files(lines.tell)
    finally:
        lines.end()


def judge_data(out: Out, session: Session) -> Session:
    """The same session; what is fatal in its data raises, and the rest is told."""
    problems = data_problems(out, session)
    raise_fatal(problems)
    out.warn(problems)
    return session
