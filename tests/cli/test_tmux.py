"""A real tmux: `hpctrain watch` in windows of several sizes, what `q` gives back, pictures for pages."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.cli.screens import plain, svg
from tests.conftest import ROOT, needs
from tests.e2e.product import Product, small
from tests.patience import PATIENCE, wait_for

TRAINS = (
    r'for step in $(seq 40); do printf "{\"step\": $step, \"steps\": 900, \"loss\": 2.$((900 - step))}\n" '
    r'>> "$HPC_RUN/metrics.jsonl"; done; echo "line $step"; exec sleep 120'
)

CURVE = r"""now=$(date +%s); awk -v now=$now 'BEGIN { for (s = 1; s <= 540; s++) printf
"{\"step\":%d,\"steps\":900,\"time\":%d,\"loss\":%.3f,\"tokens\":%d,\"tokens_per_s\":%d,\"attempt\":1}\n", s,
now - 540 + s, 1.2 + 2.1 * exp(-s / 90) + 0.06 * sin(s * 7), s * 32768, 32500 + s % 7 * 100 }' \
>> "$HPC_RUN/metrics.jsonl"; echo "step 540 of 900  loss 1.21"; exec sleep 120""".replace("\n", " ")
"""No training: the curve of one, for pictures."""
PICTURES = {
    "plan": ("hpctrain plan --on alps nanotron-wikitext.toml", "next:", 46),
    "watch": ("hpctrain watch lora", "q leave", 24),
    "status": ("hpctrain status lora", "next:", 24),
}
"""Picture -> what is typed, what is awaited, and how many rows the window has."""


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


def test_the_pictures_of_the_pages_are_what_a_terminal_shows(
    here: Product, tmp_path: Path, update_golden: bool
) -> None:
    """Drawn anew with --update-golden; else their words are compared, without numbers."""
    needs("tmux", shutil.which("tmux") is not None, "tmux is not installed")
    here.write(small(CURVE).replace('"small"', '"lora"'))
    here("init", "run", "--example", "alps/nanotron-wikitext", "-o", "nanotron-wikitext.toml")
    here("submit")
    wait_for("it has trained", lambda: "step 540" in here("logs", "lora/1", "train", code=None).stdout)
    window = Window(here, tmp_path / "tmux")
    try:
        window.tmux("new-session", "-d", "-x", "100", "-y", "30", "bash", "--norc", "--noprofile")
        window.types("PS1='$ '\n")
        for name, (typed, awaited, rows) in PICTURES.items():
            window.tmux("resize-window", "-x", "100", "-y", str(rows))
            window.types(f"clear; {typed}\n")
            window.sees(awaited)
            time.sleep(1.5)
            screen = window.tmux("capture-pane", "-p", "-e").replace(str(here.home), "/home/ada")
            screen = screen.rstrip().removesuffix("$")
            if name == "watch":
                window.types("q")
                window.sees("goes on without")
            picture = ROOT / f"docs/terminal-{name}.svg"
            if update_golden:
                picture.write_text(svg(screen, typed))
            drawn = re.findall(r">([^<]+)</text>", picture.read_text())
            assert _words(" ".join(drawn)) == _words(
                plain(screen).replace("<", "&lt;").replace(">", "&gt;")
            ), name
    finally:
        window.tmux("kill-server")
        here("cancel", "lora/1", "--yes")


def _words(text: str) -> list[str]:
    """Words that are the same on every day: no number, no bar of a plot."""
    return [word for word in text.split() if re.fullmatch(r"[A-Za-z][a-z/-]{2,}:?", word)]
