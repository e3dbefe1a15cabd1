"""A real Chromium without a window, spoken to through its debugging pipe: what a page shows and asks for."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.conftest import needs
from tests.patience import PATIENCE

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
LIMIT = 40 * PATIENCE


class Browser:
    """One tab; `requests` are the addresses it asked for, `said` what its console printed, refusals too."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, back: int) -> None:
        self._process, self._to, self._back = process, to, back
        self._number, self._rest = 0, b""
        self.requests: list[str] = []
        self.said: list[str] = []
        self._session = ""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self._ask(f"{domain}.enable")

    def open(self, page: Path, width: int, *, dark: bool = False, scripts: bool = True) -> None:
        """Load a file in a window of this size, and forget what earlier pages asked for."""
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])
        self._ask("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.requests, self.said = [], []
        self._ask("Page.navigate", url=page.absolute().as_uri())
        self._until("Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """What an expression of JavaScript is in the page."""
        answer = self._ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def mouse(self, kind: str, x: float, y: float, *, clicks: int = 1, held: bool = False) -> None:
        """mouseMoved, mousePressed or mouseReleased at a place of the window."""
        button = "none" if kind == "mouseMoved" and not held else "left"
        self._ask(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=y,
            button=button,
            buttons=int(held),
            clickCount=clicks,
        )

    def key(self, name: str) -> None:
        """Press a key, in whatever has the focus."""
        for kind in ("keyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, key=name)

    def picture(self, path: Path) -> None:
        """The whole page as a PNG."""
        answer = self._ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        question = {"id": self._number, "method": method, "params": params}
        if self._session:
            question["sessionId"] = self._session
        os.write(self._to, json.dumps(question).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _until(self, event: str) -> None:
        while self._read().get("method") != event:
            pass

    def _read(self) -> dict[str, Any]:
        """The next answer or event; TimeoutError where there is none in time."""
        end = time.monotonic() + LIMIT
        while b"\0" not in self._rest:
            if not select.select([self._back], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self._back, 1 << 16)
            assert data, f"the browser ended: {self._process.poll()}"
            self._rest += data
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, params: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif event == "Runtime.consoleAPICalled":
            self.said.append(str(params["args"]))
        elif event == "Runtime.exceptionThrown":
            self.said.append(str(params["exceptionDetails"]))
        elif event == "Log.entryAdded":
            self.said.append(params["entry"]["text"])


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with a profile of its own, ended with the block; skipped where none is installed."""
    needs("browser", PROGRAM is not None, "no Chromium is installed (tests/setup/debian.sh)")
    assert PROGRAM is not None
    low_in, ours_out = os.pipe()
    ours_in, low_out = os.pipe()
    # The browser reads from 3 and writes to 4, its own rule; bash puts them there, from above both.
    theirs_in, theirs_out = (fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (low_in, low_out))
    for end in (low_in, low_out):
        os.close(end)
    options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions")
    quiet = ("--disable-background-networking", "--disable-component-update", "--disable-sync")
    folder = f"--user-data-dir={profile}"
    wired = [
        "bash",
        "-c",
        f'exec "$@" 3<&{theirs_in} 4>&{theirs_out} {theirs_in}<&- {theirs_out}>&-',
        "browser",
    ]
    process = subprocess.Popen(
        [*wired, PROGRAM, *options, *quiet, "--remote-debugging-pipe", folder, "about:blank"],
        pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True, env=os.environ | {"HOME": str(profile)},
    )  # fmt: skip
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Browser(process, ours_out, ours_in)
    finally:
        os.close(ours_out)
        os.close(ours_in)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
