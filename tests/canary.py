"""A secret that nobody named, in the environment of every test: what is left of it when all have run?

A pytest plugin, asked for by `HPCTRAIN_CANARY=1`: each command of the suite is started by somebody who has a
token in the environment, one for each session. Nothing that hpctrain wrote may hold it, and no command line.
Processes are looked at between two tests, once a second; files when all is over, by one grep: seconds.
"""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from pathlib import Path

import pytest

ASKED = "HPCTRAIN_CANARY"
VARIABLE = "AWS_SECRET_ACCESS_KEY"
SECONDS = 300
"""Until the search of the files is given up, which is a failure."""


class Canary:
    """The token, and where it was seen."""

    def __init__(self) -> None:
        self.value = f"canary{uuid.uuid4().hex}"
        self.leaks: list[str] = []
        self._looked_at = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> object:
        """The token is in the environment of the test, and of all that it starts with it."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(VARIABLE, self.value)
            result = yield
        if time.monotonic() - self._looked_at > 1:
            self._looked_at = time.monotonic()
            self.leaks += [f"{item.nodeid}: command line of {words}" for words in self._command_lines()]
        return result

    def _command_lines(self) -> list[str]:
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes()
            except OSError:
                continue  # it has ended
            if self.value.encode() in words:
                found.append(words[:80].replace(b"\0", b" ").decode("utf-8", "replace"))
        return found

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Search the files of all tests; a session with a leak has failed."""
        base = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        argv = ["grep", "--recursive", "--files-with-matches", "--fixed-strings", "--", self.value, str(base)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=SECONDS)
        self.leaks += done.stdout.splitlines()
        if self.leaks:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Each place, without the token."""
        terminalreporter.section("a secret that nobody named")
        for leak in self.leaks or ["it is nowhere"]:
            terminalreporter.line(leak)


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get(ASKED):
        config.pluginmanager.register(Canary(), "canary")
