"""The line below what a command prints; time is ours."""

from __future__ import annotations

import io

from hpctrain.ui.status_line import StatusLine

from .help import Screen, term


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def drawn(stream: io.StringIO, width: int | None, **environ: str) -> tuple[StatusLine, Clock]:
    clock = Clock()
    return StatusLine(lambda: term(width, stream, **environ), clock), clock


def test_it_is_drawn_in_place_and_taken_away() -> None:
    stream = Screen()
    line, clock = drawn(stream, 40)
    with line:
        line.show(lambda term: f"{term.width} wide", "running")
        line.show(lambda term: f"{term.width} wide", "running")
        assert (
            stream.getvalue() == "\r\x1b[K39 wide"
        )  # the last column stays free, the same is not sent twice
        clock.now += 1
        line.show(lambda _: "other", "running")
    assert stream.getvalue().endswith("\r\x1b[Kother\r\x1b[K")


def test_in_a_pipe_it_is_said_once_a_minute_and_when_the_state_changes() -> None:
    stream = io.StringIO()
    line, clock = drawn(stream, None)
    with line:
        for second in range(130):
            clock.now = 1000.0 + second
            line.show(lambda _: f"at {clock.now - 1000:.0f}", "queued" if second < 70 else "running")
    assert stream.getvalue() == "at 0\nat 60\nat 70\n"


def test_nothing_where_progress_is_unwanted() -> None:
    stream = Screen()
    line, _ = drawn(stream, 40, HPCTRAIN_PROGRESS="0")
    with line:
        line.show(lambda _: "x", "running")
    assert stream.getvalue() == ""
