"""The installed command line as a user meets it: a process, an own home, a small environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import attrs

from tests.conftest import needs
from tests.patience import PATIENCE

PROGRAM = Path(sys.executable).with_name("hpctrain")
SYSTEM = "/usr/local/bin:/usr/bin:/bin"
OWNER = ("PIP_", "UV_", "SSL_CERT_")
"""What the owner of a machine may have set for every program on it; no test needs any of these."""
LIMIT = 60 * PATIENCE
READY = """
name    = "small"
cluster = "local"

[resources]
nodes = 1
time  = "5m"

[environment]
use = ""

[train]
use = "command"
"""
"""A run file without its program: add `[train.command]` with `small()`."""


def installed() -> None:
    """Skip where hpctrain is on the path but not installed: there is no command to run."""
    try:
        distribution("hpctrain-plugins")
        there = PROGRAM.exists()
    except PackageNotFoundError:
        there = False
    needs("installed", there, f"hpctrain is not installed beside {sys.executable} (make setup)")


def small(script: str, **more: str) -> str:
    """A run file whose program is this line of bash; `more` are texts of further tables."""
    argv = json.dumps(["bash", "-c", script])
    command = f'[train.command]\nargv = {argv}\nranks = "once"\n'
    return READY + command + "".join(more.values())


@attrs.frozen
class Product:
    """`hpctrain` for one user; `before` are words in front that lead to another machine."""

    home: Path
    folder: Path
    environ: Mapping[str, str] = attrs.field(factory=dict)
    before: tuple[str, ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        """All that the process sees."""
        path = f"{PROGRAM.parent}:{SYSTEM}"
        kept = {k: v for k, v in os.environ.items() if k.startswith(OWNER)}
        own = {"PATH": path, "HOME": str(self.home), "USER": "me", "LANG": "C.UTF-8", "TERM": "xterm"}
        return kept | own | dict(self.environ)

    def argv(self, *args: str) -> list[str]:
        return [*self.before, str(PROGRAM), *args]

    def __call__(
        self, *args: str, code: int | None = 0, limit: float = LIMIT, given: str = "", **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; any other exit code than `code` fails the test."""
        done = subprocess.run(
            self.argv(*args),
            cwd=self.folder,
            env=self.environment | environ,
            input=given,
            capture_output=True,
            text=True,
            timeout=limit,
        )
        said = f"hpctrain {' '.join(args)} -> {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert code is None or done.returncode == code, said
        assert "Traceback" not in done.stderr or "--debug" in args, said
        return done

    def json(self, *args: str, code: int | None = 0) -> Any:
        """The document that a command prints with --json."""
        return json.loads(self(*args, "--json", code=code).stdout)

    def start(self, *args: str, **environ: str) -> subprocess.Popen[str]:
        """Start a command that the test ends or waits for; Ctrl-C reaches it even from a background."""
        return subprocess.Popen(
            ["env", "--default-signal=INT", *self.argv(*args)],
            cwd=self.folder,
            env=self.environment | environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def write(self, text: str, name: str = "run.toml") -> Path:
        """A file of the user's in the folder where commands start."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def run_path(self, title: str) -> Path:
        """The run directory of `name/number`."""
        return Path(self.json("status", title)["path"])

    def state(self, title: str) -> str:
        """The run in one word."""
        return str(self.json("status", title)["state"])


def tree_of(*folders: Path) -> dict[str, tuple[int, int]]:
    """Every file with its size and time, to see whether anything was written."""
    found = {}
    for folder in folders:
        for path in folder.rglob("*"):
            said = path.lstat()
            found[str(path)] = (said.st_size, said.st_mtime_ns)
    return found


def hidden_in(secret: str, folders: Sequence[Path]) -> list[str]:
    """The files that hold `secret`."""
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return [str(path) for path in files if secret.encode() in path.read_bytes()]
