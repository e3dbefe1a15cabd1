"""The tunnel with a stand-in for the editor's program: a script that says what the real one says."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.e2e.product import Product, small
from tests.patience import PATIENCE, wait_for

STAND_IN = """#!/bin/bash
# a stand-in for the editor's command line, which refuses what the real one does
[[ "${*:1:3}" == "tunnel --accept-server-license-terms --name" && $# == 4 ]] || { echo "usage: $*"; exit 2; }
[[ $4 =~ ^[A-Za-z0-9-]{1,20}$ ]] || { echo "error invalid name: $4"; exit 1; }
[[ $VSCODE_CLI_USE_FILE_KEYRING == 1 ]] || exit 1
echo "To grant access to the server, please log into https://github.com/login/device and use code AB12-CD34"
sleep 1
echo "Open this link in your browser https://vscode.dev/tunnel/$4/work"
mkdir -p "$VSCODE_CLI_DATA_DIR"; echo "$VSCODE_CLI_DATA_DIR" >"$HOME/data"
exec sleep 300
"""


def archive(program: str) -> bytes:
    """The program as the archive that a release is."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        info = tarfile.TarInfo("code")
        info.size, info.mode = len(program), 0o755
        tar.addfile(info, io.BytesIO(program.encode()))
    return made.getvalue()


@pytest.fixture
def service() -> Iterator[tuple[str, dict[str, bytes]]]:
    """A release service on this machine; the dictionary is what it serves, by path."""
    served: dict[str, bytes] = {}

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = served.get("/archive" if "archive" in self.path else "/release")
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    served["/archive"] = archive(STAND_IN)
    sha256 = hashlib.sha256(served["/archive"]).hexdigest()
    served["/release"] = json.dumps({"url": f"{address}/archive.tar.gz", "sha256hash": sha256}).encode()
    yield address, served
    server.shutdown()
    server.server_close()


def test_code_and_link_are_shown_and_all_goes_with_the_job(
    here: Product, service: tuple[str, dict[str, bytes]]
) -> None:
    here.write(small("true"))
    going = here.start("tunnel", HPCTRAIN_VSCODE=service[0])
    assert going.stdout is not None
    first = [going.stdout.readline() for _ in range(2)]
    shown = time.time()
    assert first == ["login  https://github.com/login/device\n", "code   AB12-CD34\n"]
    said = here.run_path("small-tunnel") / "steps/tunnel/said"
    assert shown - said.stat().st_ctime < 5 * PATIENCE
    assert said.stat().st_mode & 0o777 == 0o600
    assert going.communicate(timeout=30 * PATIENCE)[0] == "link   https://vscode.dev/tunnel/small/work\n"
    assert going.returncode == 0
    data = (here.home / "data").read_text().strip()
    here("cancel", "small-tunnel")
    wait_for("the end of the tunnel", lambda: here.state("small-tunnel") == "cancelled", 20)
    assert not Path(data).exists()


def test_a_run_s_name_becomes_one_that_the_program_takes(
    here: Product, service: tuple[str, dict[str, bytes]]
) -> None:
    here.write(re.sub("^name .*", 'name = "llama_3.1-8B_on-guanaco"', small("true"), flags=re.M))
    assert "/tunnel/llama-3-1-8B-on-guan/work" in here("tunnel", HPCTRAIN_VSCODE=service[0]).stdout
    here("cancel", "llama_3.1-8B_on-guanaco-tunnel")


def test_a_release_whose_content_is_another_is_refused(
    here: Product, service: tuple[str, dict[str, bytes]]
) -> None:
    here.write(small("true"))
    service[1]["/archive"] = archive(STAND_IN + "# another\n")
    done = here("tunnel", HPCTRAIN_VSCODE=service[0], code=4)
    assert "sha256" in done.stderr
