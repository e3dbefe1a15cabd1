"""Progress on a terminal, in a log and not at all; time is ours."""

from __future__ import annotations

import io
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpctrain.ui.progress import Progress
from hpctrain.ui.term import Term
from tests.patience import PATIENCE

from .help import Screen, screen_of, term, text, without_color
from .test_text import NASTY, width_by_the_book


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def begin(width: int | None = 80, /, **environ: str) -> tuple[Progress, Clock, io.StringIO]:
    stream = io.StringIO() if width is None else Screen()
    clock = Clock()
    here = term(width, stream, **environ)
    return Progress(here, clock=clock), clock, stream


DEMO = """\
1/5 environment  torch 2.13.0 for CPU, transformers, trl, peft  412 MB    52s ok
2/5 data         4,096 sentences made here, 200 held out                   1s ok
3/5 train        0.8 M parameters, 300 of 300 steps                     1m41s ok
"""
DEMO_LOG = """\
1/5 environment: started
1/5 environment: torch 2.13.0 for CPU, transformers, trl, peft, 412 MB, ok after 52s
2/5 data: started
2/5 data: 4,096 sentences made here, 200 held out, ok after 1s
3/5 train: started
3/5 train: 0.8 M parameters, 300 of 300 steps, 100 %, running for 1m41s
3/5 train: 0.8 M parameters, 300 of 300 steps, ok after 1m41s
"""


def demo(progress: Progress, clock: Clock) -> None:
    with progress:
        line = progress.line("1/5 environment")
        clock.now += 52
        line.end("ok", "torch 2.13.0 for CPU, transformers, trl, peft", size_bytes=412e6)
        line = progress.line("2/5 data")
        clock.now += 1
        line.end("ok", "4,096 sentences made here, 200 held out")
        line = progress.line("3/5 train", "steps")
        clock.now += 101
        line.update(done=300, total=300, note="0.8 M parameters")
        line.end("ok")


def test_end_lines_are_the_documented_ones() -> None:
    progress, clock, stream = begin(80)
    demo(progress, clock)
    assert text(screen_of(stream.getvalue(), 80)) == DEMO


def test_colour_adds_codes_and_nothing_else() -> None:
    progress, clock, stream = begin(80, NO_COLOR="")
    demo(progress, clock)
    assert "\x1b[32mok\x1b[0m" in stream.getvalue()
    bare, clock, plain = begin(80)
    demo(bare, clock)
    assert without_color(stream.getvalue()) == plain.getvalue()


@pytest.mark.parametrize("environ", [{}, {"ACCESSIBLE": "1"}, {"HPCTRAIN_PROGRESS": "plain"}])
def test_a_log_gets_whole_sentences(environ: dict[str, str]) -> None:
    progress, clock, stream = begin(80 if environ else None, **environ)
    demo(progress, clock)
    assert stream.getvalue() == DEMO_LOG
    assert "\r" not in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_no_progress_is_silence() -> None:
    progress, clock, stream = begin(80, HPCTRAIN_PROGRESS="0")
    demo(progress, clock)
    assert stream.getvalue() == ""


def test_the_running_line() -> None:
    progress, clock, stream = begin(100)
    with progress:
        line = progress.line("3 model", "B")
        line.update(done=0, total=16.1e9, note="0 of 9 files")
        clock.now += 300
        line.update(done=10.2e9, note="6 of 9 files")
        running = "3 model  6 of 9 files  10.2 of 16.1 GB  63 %  34 MB/s  2m53s left"
        assert screen_of(stream.getvalue()) == [running]
        clock.now += 183
        line.update(done=16.1e9)
        line.end("ok", "9 of 9 files, checksums agree")
    last = "3 model  9 of 9 files, checksums agree"
    assert screen_of(stream.getvalue()) == [f"{last:63}16.1 GB  8m03s ok"]


def test_a_narrow_terminal_keeps_the_time_left() -> None:
    progress, clock, stream = begin(44)
    line = progress.line("3 model", "B")
    line.update(done=0, total=16.1e9)
    clock.now += 300
    line.update(done=10.2e9, note="6 of 9 files")
    assert screen_of(stream.getvalue()) == ["3 model  6 of 9 files  63 %  2m53s left"]


def test_the_last_words_of_a_child_are_shown_and_steer_nothing() -> None:
    progress, clock, stream = begin(60)
    line = progress.line("2 env")
    for word in ("Collecting torch", "\x1b[2J\x1b[31mBuilding wheels for apex (setup.py)\r\n"):
        clock.now += 1
        line.output(word)
    assert screen_of(stream.getvalue()) == ["2 env  Building wheels for apex (setup.py)  2s"]


def test_a_failure_shows_the_last_twenty_lines_and_where_all_are() -> None:
    progress, _, stream = begin(60)
    with progress:
        line = progress.line("2 env")
        for number in range(50):
            line.output(f"line {number}")
        line.end("FAIL", "pip ended with 1", log="/tmp/x/env.log")
    rows = screen_of(stream.getvalue())
    assert rows[0].endswith("0s FAIL")
    assert rows[1:] == [f"  line {n}" for n in range(30, 50)] + ["  all output: /tmp/x/env.log"]


@pytest.mark.parametrize(("environ", "frames"), [({}, 41), ({"SSH_CONNECTION": "a 1 b 2"}, 11)])
def test_redraws_are_few(environ: dict[str, str], frames: int) -> None:
    progress, clock, stream = begin(80, **environ)
    line = progress.line("1 wheels", "files")
    for number in range(1000):
        clock.now += 0.01
        line.update(done=number, total=1000)
    assert stream.getvalue().count("\n") <= frames


def test_a_log_gets_a_line_each_minute_or_each_tenth() -> None:
    progress, clock, stream = begin(None)
    line = progress.line("6 train", "steps")
    for step in range(1, 101):
        clock.now += 1
        line.update(done=step, total=100)
    line.end("ok")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 11  # the start, 10 % to 90 %, the end
    assert "6 train: 50 of 100 steps, 50 %, 0.98 steps/s, 51s left, running for 50s" in lines

    short, clock, stream = begin(None)
    line = short.line("6 train", "steps", since=clock.now - 2)
    for step in range(1, 101):
        clock.now += 0.02
        line.update(done=step, total=100)
    line.end("ok", "all of them")
    assert stream.getvalue().splitlines() == [
        "6 train: started",
        "6 train: 51 of 100 steps, 51 %, 16.6 steps/s, running for 3s",
        "6 train: all of them, ok after 3s",
    ]

    waiting, clock, stream = begin(None)
    waiting.line("5 verify")
    for _ in range(300):
        clock.now += 1
        waiting.tick()
    assert stream.getvalue().count("\n") == 1 + 5


@given(st.floats(0, 1000), st.integers(0, 100))
def test_no_estimate_before_five_per_cent_or_ten_seconds(spent: float, done: int) -> None:
    progress, clock, stream = begin(200)
    line = progress.line("x", "steps")
    line.update(done=0, total=100)
    clock.now += spent
    line.update(done=done)
    clock.now += 0.25
    line.update(done=done)
    if done < 5 or spent < 9.5 or done == 100:
        assert "left" not in stream.getvalue()
    elif spent > 10:
        assert "left" in stream.getvalue()


def test_work_that_was_there_before_is_no_speed() -> None:
    progress, clock, stream = begin(200)
    line = progress.line("x", "B")
    line.update(done=90e9, total=100e9)
    clock.now += 100
    line.update(done=91e9)
    assert screen_of(stream.getvalue())[0].endswith("91 %  10 MB/s  15m left")


def test_many_at_once_show_four_and_a_number() -> None:
    progress, clock, stream = begin(80)
    with progress:
        lines = [progress.line(f"{n} part", "files") for n in range(11)]
        clock.now += 1
        lines[0].update(done=1)
        rows = screen_of(stream.getvalue())
        assert [row.split("  ")[0] for row in rows] == [
            *(f"{n} part" for n in range(4)),
            "and 7 more",
        ]
        for line in reversed(lines[1:]):
            clock.now += 1
            line.end("ok")
        assert len(screen_of(stream.getvalue())) == 11
        lines[0].end("FAIL")
    rows = screen_of(stream.getvalue())
    assert [row.split()[0] for row in rows] == [*map(str, range(10, 0, -1)), "0"]
    assert rows[-1].endswith("11s FAIL")


def test_leaving_in_the_middle_says_stopped() -> None:
    progress, clock, stream = begin(80)
    progress.line("1 wheels").update(note="12 of 61 files")
    clock.now += 3

    def interrupted() -> None:
        with progress:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert screen_of(stream.getvalue()) == [f"{'1 wheels  12 of 61 files':70}3s stopped"]


def test_threads_may_update() -> None:
    stream = Screen()
    progress = Progress(term(120, stream))

    def work(number: int) -> None:
        line = progress.line(f"part {number}", "files")
        for done in range(200):
            line.update(done=done, total=200)
        line.end("ok")

    with progress:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20 * PATIENCE)
    rows = screen_of(stream.getvalue(), 120)
    assert sorted(row.split("  ")[0] for row in rows) == [f"part {n}" for n in range(8)]


def test_only_three_codes_are_sent() -> None:
    progress, clock, stream = begin(80)
    demo(progress, clock)
    rest = stream.getvalue().replace("\x1b[K", "").replace("\x1b[1A", "")
    assert "\x1b" not in rest


@settings(max_examples=150)
@given(NASTY, NASTY, st.integers(0, 10**14), st.integers(0, 10**14), st.integers(36, 220))
def test_no_row_is_wider_than_the_terminal(label: str, note: str, done: int, total: int, width: int) -> None:
    progress, clock, stream = begin(width)
    with progress:
        line = progress.line(label[:12], "B")
        clock.now += 30
        line.update(done=0, total=total, note=note)
        clock.now += 3000
        line.update(done=done)
        line.output(note)
        assert all(width_by_the_book(row) <= width for row in screen_of(stream.getvalue()))
        line.end("FAIL", note, log="/x")
    assert all(width_by_the_book(row) <= width for row in screen_of(stream.getvalue()))


def test_the_example_of_the_docstring_works_with_a_real_clock() -> None:
    stream = io.StringIO()
    with Progress(Term.of(stream, {})) as p:
        line = p.line("1/5 environment")
        line.update(done=1, total=2, note="pip")
        line.end("ok")
    assert stream.getvalue().splitlines()[-1].endswith("ok after 0s")
