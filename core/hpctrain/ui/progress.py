"""Progress of what runs here: redrawn in place on a terminal, whole sentences elsewhere."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from hpctrain.ui.text import cells, clip, count, duration, pad, short, size, size_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from hpctrain.ui.term import Term

LINE_LIMIT = 4
WIDEST = 80
NOTE = 24
"""Numbers leave a narrow line before the note gets shorter than this."""
REMEMBERED = 20
PLAIN_EVERY, PLAIN_APART = 60.0, 1.0
_STYLES = {"ok": "ok", "exists": "ok", "FAIL": "error", "stopped": "warn"}


class Progress:
    """The lines of everything that runs; use it in a `with`, and end each line.

    Several threads may update. A caller that waits without news calls `tick` now and then, so that
    the time shown moves on.
    """

    def __init__(self, term: Term, *, label: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self.term = term
        self.label = label
        self.clock = clock
        self._open: list[Line] = []
        self._lock = threading.RLock()
        self._rows = 0
        self._drawn = -1e9

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for line in list(self._open):
            line.end("stopped")

    def line(self, label: str, unit: str = "", since: float | None = None) -> Line:
        """Begin a line. `unit` names what is counted ("steps"), "B" means bytes.

        `since`, by the clock, is when the work began, where the line comes later.
        """
        with self._lock:
            line = Line(self, self.term.text(label), unit, since)
            self.label = max(self.label, cells(line.label))
            self._open.append(line)
            if self.term.progress == "plain":
                self.term.write(f"{line.label}: started")
            self.tick()
            return line

    def tick(self) -> None:
        """Redraw, or write a sentence, when it is time."""
        with self._lock:
            now = self.clock()
            if self.term.progress == "bar" and now - self._drawn >= self.term.pause:
                self._draw(now)
            elif self.term.progress == "plain":
                self.term.write(*(line.sentence(now) for line in self._open if line.due(now)))

    def close(self, line: Line, rows: list[str]) -> None:
        """Take `line` off and leave `rows` in its place for good; called by `Line.end`."""
        with self._lock:
            self._open.remove(line)
            if self.term.progress == "bar":
                self._draw(self.clock(), rows)
            elif self.term.progress == "plain":
                self.term.write(*rows)

    def _draw(self, now: float, above: list[str] | None = None) -> None:
        width = min(self.term.width, WIDEST)
        rows = [line.row(now, width) for line in self._open[:LINE_LIMIT]]
        if len(self._open) > LINE_LIMIT:
            rows.append(f"and {len(self._open) - LINE_LIMIT} more")
        lines = [*(above or ()), *rows]
        spare = max(0, self._rows - len(lines))  # rows of the last frame that this one lacks
        # Erase first: after a full row the cursor still stands on its last letter.
        text = "".join(f"\x1b[K{line}\n" for line in lines) + "\x1b[K\n" * spare
        self.term.send(_up(self._rows) + text + _up(spare))
        self._rows, self._drawn = len(rows), now


def _up(rows: int) -> str:
    return f"\r\x1b[{rows}A" if rows else ""


def _room_of(parts: list[str]) -> int:
    return sum(cells(part) + 2 for part in parts if part)


class Line:
    """One running thing. `output_lines` keeps a child's last lines for the case that it fails."""

    def __init__(self, progress: Progress, label: str, unit: str, since: float | None = None) -> None:
        self.label = label
        self.unit = unit
        self.note = ""
        self.done: float | None = None
        self.total: float | None = None
        self.output_lines: list[str] = []
        self._progress = progress
        self._term = progress.term
        self._spoken = progress.clock()
        self._start = self._spoken if since is None else since
        self._first = 0.0
        self._tenth = 0

    def update(
        self, *, done: float | None = None, total: float | None = None, note: str | None = None
    ) -> None:
        """Say how far it is. What `done` is at first counts as there already, not as fast work."""
        if note is not None:
            self.note = self._term.text(note)
        if total is not None:
            self.total = total
        if done is not None:
            if self.done is None:
                self._first = done
            self.done = done
        self._progress.tick()

    def output(self, text: str) -> None:
        """The last line that a child wrote; shown while there is no note."""
        self.output_lines = [*self.output_lines[1 - REMEMBERED :], self._term.text(text.rstrip())]
        self._progress.tick()

    def end(
        self, word: str, note: str | None = None, *, size_bytes: float | None = None, log: str = ""
    ) -> None:
        """Leave the line with its time and `word`: ok, exists, FAIL.

        `note` replaces what was said so far. With FAIL the last lines of a child follow and `log`,
        the file that holds them all.
        """
        amount = "" if self.unit == "B" else self._amount()
        summary = ", ".join(part for part in (self.note, amount) if part)
        text = summary if note is None else self._term.text(note)
        weight = size_bytes if size_bytes is not None else self.done if self.unit == "B" else None
        spent = duration(self._progress.clock() - self._start)
        failed = word == "FAIL"
        rows = [self._last_row(text, size(weight) if weight is not None else "", spent, word)]
        rows += [f"  {self._term.fit(line, 2)}" for line in self.output_lines if failed]
        rows += [f"  all output: {log}"] if failed and log else []
        self._progress.close(self, rows)

    def row(self, now: float, width: int) -> str:
        """The line as it runs, in `width` cells: note, amount, share, rate and time left."""
        start = pad(self.label, self._progress.label) + "  "
        parts = self._parts(now)
        needed = cells(start) + min(cells(self._text), NOTE)
        for leaving in (0, 2, 1):  # amount, rate, share; the time left stays
            if needed + _room_of(parts) > width:
                parts[leaving] = ""
        visible = [part for part in parts if part] or [duration(now - self._start)]
        room = width - cells(start) - _room_of(visible)
        if self._text and room > 3:
            visible.insert(0, clip(self._text, room, self._term.mark))
        return clip(start + "  ".join(visible), width, self._term.mark)

    def due(self, now: float) -> bool:
        """A sentence is due after a minute, and at each further tenth before the end, but no two at once."""
        silent = now - self._spoken
        tenth = int((self._share() or 0) * 10)
        return silent >= PLAIN_EVERY or (silent >= PLAIN_APART and self._tenth < tenth < 10)

    def sentence(self, now: float) -> str:
        """The line as it runs, for a stream that keeps every line."""
        self._spoken, self._tenth = now, int((self._share() or 0) * 10)
        facts = [self._text, *self._parts(now), f"running for {duration(now - self._start)}"]
        return f"{self.label}: {', '.join(fact for fact in facts if fact)}"

    @property
    def _text(self) -> str:
        return self.note or (self.output_lines[-1] if self.output_lines else "")

    def _last_row(self, text: str, weight: str, spent: str, word: str) -> str:
        painted = self._term.paint(_STYLES.get(word, ""), word)
        if self._term.progress == "plain":
            facts = ", ".join(part for part in (text, weight) if part)
            return f"{self.label}: {facts}{', ' if facts else ''}{painted} after {spent}"
        start = pad(self.label, self._progress.label) + "  "
        right = f"  {weight}{spent:>7} " if weight else f"  {spent} "
        space = min(self._term.width, WIDEST) - cells(start) - cells(right) - cells(word)
        return f"{start}{pad(clip(text, max(0, space), self._term.mark), space)}{right}{painted}"

    def _parts(self, now: float) -> list[str]:
        """Amount, share, rate, time left; empty where it is not known."""
        spent, share = now - self._start, self._share()
        rate = ((self.done or 0) - self._first) / spent if spent >= 1 else 0
        parts = [self._amount(), "" if share is None else f"{int(share * 100)} %", "", ""]
        if rate > 0:
            pace = size(rate) if self.unit == "B" else f"{short(rate)} {self.unit}".rstrip()
            parts[2] = f"{pace}/s"
        # Earlier than this an estimate is a guess that people would remember.
        if share is not None and 0.05 <= share < 1 and spent >= 10 and rate > 0:
            parts[3] = f"{duration(((self.total or 0) - (self.done or 0)) / rate)} left"
        return parts

    def _share(self) -> float | None:
        if self.done is None or not self.total:
            return None
        return min(1.0, max(0.0, self.done / self.total))

    def _amount(self) -> str:
        if self.done is None:
            return ""
        if self.unit == "B":
            return size_of(self.done, self.total) if self.total else size(self.done)
        done = count(int(self.done))
        text = f"{done} of {count(int(self.total))}" if self.total else done
        return f"{text} {self.unit}".rstrip()
