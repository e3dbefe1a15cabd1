"""`hpctrain watch` in a real tmux: sizes of windows, and what `q` gives back."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.conftest import needs
from tests.e2e.product import Product, small
from tests.patience import PATIENCE, wait_for

TRAINS = (
    r'for step in $(seq 40); do printf "{\"step\": $step, \"steps\": 900, \"loss\": 2.$((900 - step))}\n" '
    r'>> "$HPC_RUN/metrics.jsonl"; done; echo "line $step"; exec sleep 120'
)


@attrs.frozen
class Window:
    """One window of a tmux server of its own, with a shell in it."""

    user: Product
    socket: Path

    def tmux(self, *words: str) -> str:
        argv = ("tmux", "-f", "/dev/null", "-S", str(self.socket), *words)
        done = subprocess.run(
            argv,
            cwd=self.user.folder,
            env=self.user.environment,
            capture_output=True,
            text=True,
            timeout=20 * PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def types(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)

    def sees(self, *words: str) -> list[str]:
        """The rows, once all of these words stand on them."""
        end = time.monotonic() + 30 * PATIENCE
        while not all(word in (shown := self.tmux("capture-pane", "-p")) for word in words):
            assert time.monotonic() < end, f"{words} are not all in:\n{shown}"
            time.sleep(0.1)
        return shown.splitlines()


@pytest.fixture
def window(here: Product, tmp_path: Path) -> Iterator[Window]:
    """A shell beside a run that has trained 40 of 900 steps and sleeps."""
    needs("tmux", shutil.which("tmux") is not None, "tmux is not installed")
    here.write(small(TRAINS))
    here("submit")
    wait_for("it has trained", lambda: "line 40" in here("logs", "small/1", "train", code=None).stdout)
    server = Window(here, tmp_path / "tmux")
    yield server
    server.tmux("kill-server")
    here("cancel", "small/1", "--yes")


@pytest.mark.parametrize(("columns", "height"), [(80, 24), (200, 50), (40, 24)])
def test_it_fills_the_window_and_gives_it_back(window: Window, columns: int, height: int) -> None:
    size = ("-x", str(columns), "-y", str(height))
    window.tmux("new-session", "-d", *size, "bash", "--norc", "--noprofile")
    window.types("PS1='$ '; echo before\n")
    window.sees("\nbefore")
    window.types("hpctrain watch small\n")
    rows = window.sees("q leave", "loss 2.860", "line 40")
    assert rows[0].startswith("small/1 on local  RUNNING")
    assert len(rows) <= height
    assert "q leave" in rows[height - 1]
    assert max(map(len, rows)) <= columns
    window.types("q")
    after = window.sees("small/1 goes on without this command", "before")
    assert not any("q leave" in row for row in after)
    window.types("stty -a | grep -o ' icanon\\| echo '\n")  # lines and letters are the shell's again
    window.sees("\n icanon", "\n echo")
