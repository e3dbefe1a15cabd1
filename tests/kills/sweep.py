"""Kill one command again and again, at seeded places, and look what everybody sees afterwards.

Run as `python -m tests.kills.sweep CASE SEED COUNT FOLDER`; prints a JSON document. A place is a write, a
new file, a rename, a removal or a program that is started. Each kill has its own home, and hits a process
that is forked from this one, which has imported what an undisturbed command did: a start takes no time.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hpctrain.cli import app
from tests.e2e.product import small
from tests.schedulers.killed_driver import Death

ENVIRON = {"USER": "me", "LANG": "C.UTF-8", "TERM": "dumb", "PATH": "/usr/local/bin:/usr/bin:/bin"}
LIMIT = 60.0


@dataclass(frozen=True)
class Case:
    """A command that changes something; `before` makes its world, `again` must succeed afterwards."""

    command: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    again: tuple[tuple[str, ...], ...] = ()
    script: str = "true"
    readers: tuple[tuple[str, ...], ...] = (("runs", "--json"),)
    until: str = ""
    """What `status` says once the world is made."""
    makes: str = ""
    """A new folder: whole or not there, and refused a second time."""


RUN = ("submit", "run.toml")
CASES = {
    "init": Case(("init", "run", "-o", "fresh.toml", "--yes"), readers=()),
    "init-plugin": Case(
        ("init", "plugin", "mine", "--kind", "trainer"), makes="hpctrain-mine", readers=()
    ),
    "lock": Case(("lock", "run.toml"), again=(("check", "run.toml"),)),
    "submit": Case(RUN, again=(("continue", "small"),)),
    "eject": Case(("eject", "run.toml", "-o", "scripts"), makes="scripts", readers=()),
    "continue": Case(
        ("continue", "small/1"), before=(RUN,), until="failed", script="exit 3",
        readers=(("runs", "--json"), ("status", "small/1", "--json")),
    ),
    "cancel": Case(
        ("cancel", "small/1", "--yes"), before=(RUN,), until="running", script="exec sleep 40",
        readers=(("runs", "--json"), ("status", "small/1", "--json")),
    ),
    "nodes-avoid": Case(
        ("nodes", "avoid", "n1", "n2", "--on", "local"), readers=(("nodes", "--json", "--on", "local"),)
    ),
    "nodes-forgive": Case(
        ("nodes", "forgive", "n1", "--on", "local"), before=(("nodes", "avoid", "n1", "--on", "local"),),
        readers=(("nodes", "--json", "--on", "local"),),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Home:
    """One user's folders."""

    root: Path

    def make(self, case: Case) -> Home:
        """With the run file, and what was done before the command."""
        (self.root / "work").mkdir(parents=True)
        (self.root / "work/run.toml").write_text(small(case.script))
        for words in case.before:
            code, text = self.run(words)
            assert code == 0, text
        end = time.monotonic() + LIMIT
        while case.until and f'"state": "{case.until}"' not in self.run(("status", "small/1", "--json"))[1]:
            assert time.monotonic() < end, f"not {case.until}"
            time.sleep(0.1)
        return self

    def counted(self, words: Sequence[str]) -> int:
        """How many places a command has; what it imported is imported here as well."""
        code, text = self.run(words, "count")
        assert code == 0, text
        places, modules = json.loads((self.root / "seen").read_text())
        for name in modules:
            importlib.import_module(name)
        return int(places)

    def made(self, case: Case) -> set[str]:
        """The names of all that lies in the folder that the command makes."""
        folder = self.root / "work" / case.makes
        return {str(path.relative_to(folder)) for path in folder.rglob("*")}

    def run(self, words: Sequence[str], at: str = "") -> tuple[int, str]:
        """A command in a process of its own: its exit code, or minus the signal, and all that it wrote."""
        log = self.root / "output"
        pid = os.fork()
        if not pid:
            self._become(words, at, log)
        until = time.monotonic() + LIMIT
        while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0:
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)
        return os.waitstatus_to_exitcode(ended[1]), log.read_text(errors="replace")

    def _become(self, words: Sequence[str], at: str, log: Path) -> None:
        code = 70
        try:
            os.setsid()
            os.chdir(self.root / "work")
            os.environ.clear()
            os.environ.update(ENVIRON, HOME=str(self.root))
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for number in (1, 2):
                os.dup2(output, number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            death = Death(at)
            code = app.run(list(words))
            sys.stdout.flush()
            sys.stderr.flush()
            if at == "count":
                ours = [name for name in sys.modules if name.startswith("hpctrain")]
                (self.root / "seen").write_text(json.dumps([death.seen, ours]))
        finally:
            os._exit(code)


def faults_of(case: Case, home: Home, at: str) -> list[str]:
    """What is wrong after one kill; a command that had ended before its place came counts as well."""
    code, text = home.run(case.command, at)
    if code not in (0, -signal.SIGKILL):
        return [f"{at}: exit code {code}: {text}"]
    faults = []
    command: tuple[tuple[str, ...], ...] = (case.command,)
    if case.makes and (made := home.made(case)):
        whole = Home(home.root.parent / "count").made(case)
        faults += [f"{at}: half a folder: {sorted(whole - made)[:5]} are missing"] if made != whole else []
        command = ()
    for words in (*case.readers, *command, *case.again, *case.readers):
        code, text = home.run(words)
        if code or "Traceback" in text:
            faults.append(f"{at}: then {' '.join(words)} ends with {code}: {text[-600:]}")
        elif "--json" in words:
            faults += _unread(at, words, text)
    return faults


def _unread(at: str, words: Sequence[str], text: str) -> list[str]:
    try:
        json.loads(text.splitlines()[0])
    except (ValueError, IndexError):
        return [f"{at}: {' '.join(words)} writes no document: {text[-600:]}"]
    return []


def sweep(case: Case, seed: int, count: int, folder: Path) -> dict[str, object]:
    """Every place in turn, from a random one."""
    first = Home(folder / "count").make(case)
    places = first.counted(case.command)
    for words in (*case.again, *case.readers):
        first.counted(words)
    order = random.Random(seed).sample(range(1, places + 1), places)
    faults: list[str] = []
    for number in range(count):
        home = Home(folder / str(number)).make(case)
        faults += faults_of(case, home, f"at:{order[number % places]}")
        _tidied(home, case)
    _tidied(first, case)
    return {"places": places, "kills": count, "faults": faults}


def _tidied(home: Home, case: Case) -> None:
    """What was started ends, and the folders go."""
    if case.script != "true":
        home.run(("cancel", "small/1", "--yes"))
    shutil.rmtree(home.root, ignore_errors=True)


def main(name: str, seed: str, count: str, folder: str) -> None:
    """One sweep of one command."""
    print(json.dumps(sweep(CASES[name], int(seed), int(count), Path(folder))))


if __name__ == "__main__":
    main(*sys.argv[1:])
