"""A user of a twin who trains: everything goes through the product's own command line."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE
from tests.twin.life import Twin
from tests.twin.site_file import ROOT

EXAMPLE = Path(__file__).parent / "example"
MAKER = ROOT / "plugins/hpctrain_plugins/local/demo/make_data.py"
OVER = ("done", "failed", "cancelled")


class User:
    """Somebody on the login node, with the example in a folder of their home."""

    def __init__(self, twin: Twin, name: str = "alice", folder: str = "run") -> None:
        self.twin, self.name, self.folder = twin, name, f"{twin.site.home(name)}/{folder}"
        self.run: tuple[str, ...] = ()
        twin.sh(f"mkdir -p {self.folder}", user=name)
        self.put("run.toml", (EXAMPLE / "run.toml").read_text())
        self.put("make_data.py", MAKER.read_text())

    @classmethod
    def waiting(cls, twin: Twin, test: str) -> User:
        """Somebody with a run that only sleeps, both named after a test."""
        title = re.sub(r"\W+", "-", test.replace("_", "-")).removeprefix("test-").strip("-")[:60]
        found = cls(twin, folder=title)
        found.put("run.toml", (EXAMPLE / "wait.toml").read_text().replace('"wait"', f'"{title}"'))
        return found

    def put(self, name: str, text: str) -> None:
        """A file in the folder."""
        self.twin.write(f"{self.folder}/{name}", text, user=self.name)

    def hpctrain(
        self, *words: str, timeout: float = 120, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """The command as the user types it."""
        site = {"HPCTRAIN_SITE": str(EXAMPLE / "site.toml"), **(env or {})}
        return self.twin.run(
            "hpctrain", *words, user=self.name, cwd=self.folder, timeout=timeout, env=site
        )  # fmt: skip

    def submit(self, *words: str) -> dict[str, Any]:
        """Submit the example; gives its first status."""
        account = self.twin.site.overlay.account
        on = ("--on", self.twin.cluster, "--account", account)
        done = self.hpctrain("submit", "run.toml", *on, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        self.run = ()  # the newest one
        found = self.status()
        self.run = (found["run"],)
        return found

    def status(self, *, kept: bool = False) -> dict[str, Any]:
        """What `status --json` says, whatever it ends with. Unless `kept`, the last answer of the
        scheduler, which the site's courtesy makes it reuse, is taken away before."""
        if not kept:
            self.twin.run("rm", "-rf", f"{self.twin.site.home(self.name)}/.local/state/hpctrain/polls")
        found: dict[str, Any] = json.loads(self.hpctrain("status", *self.run, "--json").stdout)
        return found

    def until(self, *states: str, seconds: float = 180) -> dict[str, Any]:
        """Ask again until the run is in one of the states, or over."""
        end = time.monotonic() + seconds * PATIENCE
        found: dict[str, Any] = {}
        while time.monotonic() < end:
            found = self.status()
            if found.get("state") in states:
                return found
            assert found.get("state") not in OVER, f"{found}\n{self.log()}\n{self.twin.said()}"
            time.sleep(1)
        raise AssertionError(f"not {states} within {seconds:g} s: {found}\n{self.log()}\n{self.twin.said()}")

    def log(self) -> str:
        """What the training printed."""
        done = self.hpctrain("logs", *self.run)
        return (done.stdout + done.stderr)[-4000:]

    def step(self, found: dict[str, Any], name: str = "train") -> dict[str, Any]:
        """One step of a status."""
        row: dict[str, Any] = next(row for row in found["steps"] if row["step"] == name)
        return row
