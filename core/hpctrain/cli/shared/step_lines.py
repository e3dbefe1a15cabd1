"""Progress of a run that is carried out in front of the user: one line a step."""

from __future__ import annotations

from types import TracebackType

from hpctrain.cli.out import Out
from hpctrain.render.graph import Node
from hpctrain.ui.progress import Line, Progress


class StepLines:
    """What the executor reports, on stderr; silent with --quiet."""

    def __init__(self, out: Out, steps: int) -> None:
        self._progress = None if out.flags.quiet else Progress(out.err, label=14)
        self._steps = steps
        self._number = 0
        self._line: Line | None = None

    def __enter__(self) -> StepLines:
        if self._progress:
            self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._line and error:
            self._line.end("FAIL")
        if self._progress:
            self._progress.__exit__(kind, error, trace)

    def tell(self, event: str, node: Node, detail: str) -> None:
        """exists, start, line, done, job, waits."""
        if self._progress is None:
            return
        if event == "line":
            if self._line:
                self._line.output(detail)
            return
        if event == "done":
            if self._line:
                self._line.end("ok")
            self._line = None
            return
        self._number += 1
        line = self._progress.line(f"{self._number}/{self._steps} {node.name}")
        if event == "start":
            self._line = line
        else:
            line.end({"exists": "exists", "waits": "waits"}.get(event, "queued"), note=_note(event, detail))


def _note(event: str, detail: str) -> str | None:
    return f"job {detail}" if event == "job" else None
