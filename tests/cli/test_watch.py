"""`hpctrain watch` as somebody sees it: drawn, resized, left; and lines in a pipe. The jobs are real."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.product import Product, small
from tests.patience import PATIENCE, wait_for
from tests.ui.terminal import Terminal

CLEAR = "\x1b[2J"
TRAINS = (
    r"printf '\033[31mred\033[0m \033]0;evil\007 begins\n'; for step in $(seq 40); do "
    r'printf "{\"time\": $(date +%s.%N), \"step\": $step, \"steps\": 900, \"loss\": 2.$((900 - step)), '
    r'\"tokens_per_s\": 1912.3}\n" >> "$HPC_RUN/metrics.jsonl"; done; '
    r'echo "{\"step\": 40, \"eval_loss\": 2.5}" >> "$HPC_RUN/metrics.jsonl"; echo "line $step"; exec sleep 60'
)


class Person:
    """Somebody in front of a terminal in which a command runs."""

    def __init__(
        self, user: Product, *args: str, columns: int = 80, height: int = 24, **environ: str
    ) -> None:
        self.keyboard, self.theirs = pty.openpty()
        self.before = termios.tcgetattr(self.theirs)
        self.screen = Terminal(columns, height)
        self._set_size(columns, height)
        self.sent = ""
        self.process = subprocess.Popen(
            ["env", "--default-signal=INT", *user.argv(*args)], cwd=user.folder,
            env=user.environment | environ, stdin=self.theirs, stdout=self.theirs, stderr=self.theirs,
            start_new_session=True,
        )  # fmt: skip

    def _set_size(self, columns: int, height: int) -> None:
        fcntl.ioctl(self.keyboard, termios.TIOCSWINSZ, struct.pack("HHHH", height, columns, 0, 0))

    def resizes(self, columns: int, height: int) -> None:
        """Make the window another size, and wait until everything is drawn anew."""
        self._set_size(columns, height)
        text = ""
        end = time.monotonic() + 20 * PATIENCE
        while CLEAR not in text and time.monotonic() < end:
            text += self._read()
        self.screen = Terminal(columns, height, alternate=True)
        self.screen.feed(text.partition(CLEAR)[2])

    def sees(self, *words: str) -> list[str]:
        """The rows, once all of these words stand on them."""
        end = time.monotonic() + 20 * PATIENCE
        while time.monotonic() < end:
            self.screen.feed(self._read())
            rows = self.screen.rows
            if all(any(word in row for row in rows) for word in words):
                return rows
        raise AssertionError(f"{words} not in {self.screen.rows}")

    def types(self, key: str) -> None:
        os.write(self.keyboard, key.encode())

    def left(self) -> int:
        """The exit code; whatever it was, the terminal is as before."""
        code = self.process.wait(20 * PATIENCE)
        assert termios.tcgetattr(self.theirs) == self.before
        return code

    def end(self) -> None:
        self.process.kill()
        self.process.wait(10 * PATIENCE)
        for descriptor in (self.keyboard, self.theirs):
            os.close(descriptor)

    def _read(self) -> str:
        if not select.select([self.keyboard], [], [], 0.1)[0]:
            return ""
        text = os.read(self.keyboard, 65536).decode("utf-8", "replace")
        self.sent += text
        return text


@pytest.fixture
def training(here: Product) -> Iterator[Product]:
    """A user whose run has trained 40 of 900 steps and sleeps."""
    here.write(small(TRAINS))
    here("submit")
    wait_for("it has trained", lambda: "line 40" in here("logs", "small/1", "train", code=None).stdout)
    yield here
    here("cancel", "small/1", "--yes")


@contextlib.contextmanager
def person(user: Product, *args: str, **more: Any) -> Iterator[Person]:
    somebody = Person(user, *args, **more)
    try:
        yield somebody
    finally:
        somebody.end()


def test_the_whole_terminal_and_the_way_back(training: Product) -> None:
    with person(training, "watch", "small") as somebody:
        rows = somebody.sees("q leave", "line 40", "└ step 1")
        assert rows[0].startswith("small/1 on local  RUNNING  step 40/900 4 %")
        shown = "\n".join(rows)
        for part in (
            "loss 2.860",
            "1,912 tokens/s",
            "eval_loss 2.500 at step 40",
            "train  running",
            "red  begins",
        ):
            assert part in shown, part
        assert "evil" not in somebody.sent
        assert len(somebody.sent) < 6000, "a first frame is short, also over a slow line"
        somebody.resizes(40, 12)
        narrow = somebody.sees("q leave", "loss 2.860")
        assert narrow[0] == "small/1 on local  RUNNING"
        somebody.resizes(200, 50)
        wide = somebody.sees("q leave", "STEP   STATE", "line 40")
        assert wide[1].startswith("loss")
        assert "STEP   STATE" in wide[1]
        somebody.types("q")
        assert somebody.left() == 0
        somebody.sees("small/1 goes on without this command; hpctrain cancel small/1 ends it")
        assert not somebody.screen.alternate
    assert training.state("small/1") == "running"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGHUP, 130)]
)
def test_a_signal_gives_the_terminal_back(training: Product, number: signal.Signals, code: int) -> None:
    with person(training, "watch", "small") as somebody:
        somebody.sees("q leave")
        somebody.process.send_signal(number)
        assert somebody.left() == code
        somebody.sees("small/1 goes on without this command")
        assert not somebody.screen.alternate
    assert training.state("small/1") == "running"


def test_without_colour_and_in_ascii(training: Product) -> None:
    with person(training, "watch", "--ascii", "small", NO_COLOR="1") as somebody:
        rows = somebody.sees("q leave", "+ step 1")
        assert all(row.isascii() for row in rows)
        assert not re.search(r"\x1b\[[0-9;]*m", somebody.sent)
        somebody.types("q")
        assert somebody.left() == 0


def test_all_runs_that_live_and_the_end_of_the_last(here: Product) -> None:
    here.write(small("sleep 4"))
    here("submit")
    with person(here, "watch") as somebody:
        somebody.sees("RUN      ON     STATE", "small/1  local  running")
        assert somebody.left() == 0
        somebody.sees("no run lives")
    assert here("watch").stderr == "no run lives; hpctrain runs lists those that are over\n"


def test_lines_in_a_pipe_until_the_run_is_over(here: Product) -> None:
    here.write(
        small(
            r'echo "{\"step\": 3, \"steps\": 4, \"loss\": 1.5}" >> "$HPC_RUN/metrics.jsonl"; sleep 3; exit 3'
        )
    )
    here("submit")
    done = here("watch", "small", code=8)
    assert not {"\x1b", "\r"} & set(done.stdout)
    lines = [line.split("  ", 1)[1] for line in done.stdout.splitlines()]
    assert lines[0].startswith("small/1  RUNNING")
    assert lines[-1].startswith("small/1  FAILED  step 3/4 75 %  loss 1.500")
    assert lines[-1].endswith("exit code 3")
    document = json.loads(here("watch", "small", "--once", "--json").stdout)
    assert (document["schema"], document["state"]) == ("hpctrain/watch/1", "failed")
    assert document["training"]["steps"] == 4


def test_the_end_of_a_run_among_all_is_a_line_too(here: Product) -> None:
    here.write(small("sleep 3; exit 3"))
    here("submit")
    done = here("watch")
    lines = [line.split("  ", 1)[1] for line in done.stdout.splitlines()]
    assert lines[0].startswith("small/1  RUNNING")
    assert lines[-1].startswith("small/1  FAILED")
    assert done.stderr == "no run lives; hpctrain runs lists those that are over\n"


def test_an_unknown_run_is_said_before_the_screen_is_taken(here: Product) -> None:
    with person(here, "watch", "nothing") as somebody:
        assert somebody.left() == 2
        somebody.sees("error[no-run]")
        assert "\x1b[?1049h" not in somebody.sent
