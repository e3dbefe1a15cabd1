"""A reader of one page: installs what it says, then types its commands in a folder and an empty home."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.docs.installed import Install

SECONDS = 120
INSTALLS = re.compile(r"\b(?:uv )?(?:pip|tool) install\b[^`\n]*\bhpctrain\b[^`\n]*")
REQUIREMENT = re.compile(r"[\w.-]+(\[[\w,-]+\])?([<>=!~]=?[\w.*]+)?")
TAKE_A_VALUE = {"--find-links", "-f", "--index-url", "-i", "--extra-index-url", "--python", "-p"}
LOOKS = {"check", "clusters", "completion", "diff", "eject", "init", "plan", "plugins", "schema"}
"""Commands that need no cluster: they are typed also where a block is only `shown`."""

NEEDS = {
    "convert": ("numpy",),
    "data": ("jinja2", "pyarrow", "tokenizers", "zstandard"),
    "publish": ("numpy", "huggingface_hub"),
}
"""Packages of extras that a command cannot do without; `test_extras` compares this with what they say."""

OF_CLUSTERS = {"module", "srun"}
"""Programs of the machines that pages are about."""

WORDS = {"cd", "export", ".", "source", "for", "make", "git", "pip"}
"""Of the shell, of a checkout, and of whoever could install something."""


OF_A_MACHINE = {"--against"}
"""Options whose file only a login node can write."""


def _only_looks(words: list[str]) -> bool:
    """Whether it is a command of ours that says the same on every computer."""
    return words[0] == "hpctrain" and bool(LOOKS.intersection(words[1:2])) and not OF_A_MACHINE & {*words}


def requirements(line: str) -> tuple[str, ...]:
    """What an install line asks for: `pip install --find-links dist 'hpctrain[all]' uv` -> both names."""
    words = shlex.split(line.partition("install")[2], comments=True)
    names = []
    while words:
        word = words.pop(0)
        if word in TAKE_A_VALUE:
            words.pop(0)
        elif not word.startswith("-") and REQUIREMENT.fullmatch(word):
            names.append(word)
    return tuple(names)


def stated(text: str) -> tuple[str, ...]:
    """The requirements of the first install line of a page."""
    line = INSTALLS.search(text)
    assert line, "the page names no install line, such as `pip install 'hpctrain[all]'`"
    return requirements(line[0])


class Reader:
    """The folder, the home and the installation that the commands of a page meet."""

    def __init__(self, install: Install, folder: Path, home: Path) -> None:
        self.cwd = folder
        self._install, self._folder = install, folder
        self._requirements: tuple[str, ...] = ()
        self.environ = {"HOME": str(home)}

    def install(self, names: Iterable[str]) -> None:
        """Have these requirements too; `bin` and `lib` are those of a venv made in the page's folder."""
        new = tuple(word for word in names if word not in self._requirements)
        if not new:
            return
        self._requirements += new
        self.venv = self._install(self._requirements)
        self.environ["PATH"] = f"{self.venv}/bin:/usr/bin:/bin"
        for name in ("bin", "lib"):
            (self._folder / name).unlink(missing_ok=True)
            (self._folder / name).symlink_to(self.venv / name)

    def type(self, command: str) -> tuple[int, str]:
        """Carry out one command line; its exit code and all that it printed."""
        note = self._folder.parent / "pwd"
        script = f"cd {shlex.quote(str(self.cwd))}\n{command}\ncode=$?\npwd >&3\nexit $code"
        with note.open("w") as pwd:
            done = subprocess.run(
                ["bash", "-c", f"exec 3>&{pwd.fileno()}\n{script}"],
                pass_fds=[pwd.fileno()],
                env=self.environ,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                text=True,
                timeout=SECONDS,
            )
        self.cwd = Path(note.read_text().strip() or self.cwd)
        return done.returncode, done.stdout

    def look_at(self, commands: Iterable[str], place: str) -> None:
        """Commands of a block that is only shown: type those that can run here, take the others to pieces."""
        lines = []
        for command in commands:
            words = shlex.split(command, comments=True)
            if INSTALLS.search(command):
                self.install(requirements(command))
            elif words[0] == "cp" or _only_looks(words):
                code, printed = self.type(command)
                assert code == 0, f"{place} $ {command}\n{printed}"
            elif words[0] == "hpctrain":
                self._has(NEEDS.get(words[1], ()), f"{place} $ {command}")
                lines.append(words[1:])
            else:
                self._starts(words[0], f"{place} $ {command}")
        self._parse(lines, place)

    def _has(self, packages: Iterable[str], command: str) -> None:
        folder = next(self.venv.glob("lib/python*/site-packages"))
        absent = [name for name in packages if not (folder / name).exists()]
        assert not absent, f"{command}: {' '.join(self._requirements)} does not bring {', '.join(absent)}"

    def _starts(self, program: str, command: str) -> None:
        startable = program in OF_CLUSTERS | WORDS or (self._folder / program).exists()
        assert startable or shutil.which(program, path=self.environ["PATH"]), f"{command}: no {program}"

    def _parse(self, lines: list[list[str]], place: str) -> None:
        if lines:
            argv = (f"{self.venv}/bin/python", str(Path(__file__).with_name("parse.py")))
            done = subprocess.run(
                argv,
                input=json.dumps(lines),
                env=self.environ,
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
            assert done.returncode == 0, f"{place}: {done.stderr}"
