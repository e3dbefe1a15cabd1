"""TAB in the real shells, behind a pseudo-terminal, with the scripts that `hpctrain completion` prints."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

from tests.conftest import needs
from tests.e2e.product import Product, small
from tests.patience import PATIENCE

SHELLS = {
    "bash": (("bash", "--norc", "--noprofile", "-i"), "PS1='%% '; . ./complete\n"),
    "zsh": (
        ("zsh", "-f", "-i"),
        "PS1='%% '; unsetopt menucomplete automenu; autoload -Uz compinit; compinit -u; . ./complete\n",
    ),
    "fish": (("fish", "-i"), "function fish_prompt; echo -n '%% '; end; . ./complete\n"),
}
LINES = {
    "hpctrain stat": "hpctrain status",
    "hpctrain cancel sm": "hpctrain cancel small/1",
    "hpctrain report sm": "hpctrain report small/1",
    "hpctrain diff oth": "hpctrain diff other.toml",
    "hpctrain clusters fr": "hpctrain clusters frontier",
    "hpctrain --json pla": "hpctrain --json plan",
    "hpctrain plan --on fr": "hpctrain plan --on frontier",
    "hpctrain plan --on=fr": "hpctrain plan --on=frontier",
    "hpctrain plan --set a=b --ex": "hpctrain plan --set a=b --explain",
    "hpctrain plan oth": "hpctrain plan other.toml",
    "hpctrain init si": "hpctrain init site",
    "hpctrain init run --tra": "hpctrain init run --trainer",
    "hpctrain init run --trainer nano": "hpctrain init run --trainer nanotron",
    "hpctrain init run --example alps/na": "hpctrain init run --example alps/nanotron-wikitext",
    "hpctrain data prepare --tokeni": "hpctrain data prepare --tokenizer",
    "hpctrain data cou": "hpctrain data count",
    "hpctrain help not-pin": "hpctrain help not-pinned",
    "hpctrain completion fi": "hpctrain completion fish",
    "hpctrain status --js": "hpctrain status --json",
    "hpctrain convert sm": "hpctrain convert small/1",
}
"""What is typed before TAB, and what stands on the line after it."""


class Typist:
    """Somebody who types into an interactive shell."""

    def __init__(self, shell: str, user: Product) -> None:
        argv, setup = SHELLS[shell]
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        environment = user.environment | {"TERM": "dumb" if shell != "fish" else "xterm"}
        self._process = subprocess.Popen(
            ("setsid", "--ctty", *argv), cwd=user.folder, env=environment,
            stdin=theirs, stdout=theirs, stderr=theirs,
        )  # fmt: skip
        os.close(theirs)
        self._read(1.0)
        self._send(setup)
        self._read(1.0)

    def after_tab(self, typed: str, expected: str) -> str:
        """What the shell shows after TAB, until it shows what is expected or the time is over."""
        self._send(typed + "\t")
        screen = self._read(8.0 * PATIENCE, expected)
        self._send("\x15")  # erases the line
        self._read(0.3)
        return screen

    def end(self) -> None:
        self._process.kill()
        self._process.wait(10 * PATIENCE)
        os.close(self._ours)

    def _send(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def _read(self, seconds: float, expected: str = "") -> str:
        shown, end = "", time.monotonic() + seconds
        while time.monotonic() < end and not (expected and expected in _plain(shown)):
            if select.select([self._ours], [], [], 0.05)[0]:
                data = os.read(self._ours, 65536).decode(errors="replace")
                if "\x1b[c" in data or "\x1b[0c" in data:  # fish asks what the terminal is
                    self._send("\x1b[?62;c")
                shown += data
        return _plain(shown)


def _plain(text: str) -> str:
    """Without colours and moves of the cursor."""
    return re.sub(r"\x1b\[[0-9;?>=]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]|[\x07\r]", "", text)


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """Somebody with one run and two run files."""
    home = tmp_path_factory.mktemp("completion")
    for name in ("home", "work"):
        (home / name).mkdir()
    product = Product(home / "home", home / "work")
    product.write(small("true"), "other.toml")
    product.write(small("true"))
    product("submit", "--wait")
    return product


@pytest.mark.parametrize("shell", SHELLS)
def test_tab_completes_the_line(user: Product, shell: str) -> None:
    needs(
        shell,
        any(Path(folder, shell).exists() for folder in ("/bin", "/usr/bin")),
        f"{shell} is not installed",
    )
    user.write(user("completion", shell).stdout, "complete")
    typist = Typist(shell, user)
    try:
        shown = {typed: typist.after_tab(typed, after) for typed, after in LINES.items()}
    finally:
        typist.end()
    assert {typed: shown[typed][-300:] for typed, after in LINES.items() if after not in shown[typed]} == {}
