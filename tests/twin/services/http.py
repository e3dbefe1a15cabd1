"""One HTTP server for all services: a function from question to answer, and misbehaviour on demand.

Each line of FOLDER/SERVICE.script spoils one answer: `429 SECONDS`, `503` (any other status likewise),
`html STATUS` (a page of a proxy's), `short BYTES` (the answer ends early although it announced all),
`drop BYTES` (the line breaks while the client sends). `~PATTERN ` in front of it: it waits for the
next question whose `METHOD PATH` the pattern finds. FOLDER/SERVICE.log has a line a question.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qsl, unquote, urlsplit

PAGE = b"<html><head><title>Access denied</title></head><body>The proxy does not let you.</body></html>"
CHUNK = 1 << 20


@dataclass(frozen=True)
class File:
    """A body that stays on disk."""

    path: Path


@dataclass(frozen=True)
class Answer:
    """What a service says."""

    status: int
    body: bytes | File = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ask:
    """One question."""

    method: str
    url: str
    """What it is asked under: `https://huggingface.co`."""
    path: str
    """As it came: escapes stay, so that a branch may have a slash in its name."""
    query: str
    headers: Mapping[str, str]
    body: Body

    @property
    def token(self) -> str:
        """The bearer's token, or empty."""
        return self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def form(self) -> list[tuple[str, str]]:
        """Fields of a posted form."""
        return parse_qsl(self.body.read().decode())


class Body:
    """What the client sends, read once."""

    def __init__(self, stream: BinaryIO, headers: Mapping[str, str]) -> None:
        self._pieces = _chunked(stream) if "transfer-encoding" in headers else _counted(stream, headers)

    def pieces(self) -> Iterator[bytes]:
        """Piece by piece."""
        return self._pieces

    def read(self) -> bytes:
        """All of it."""
        return b"".join(self._pieces)


def _counted(stream: BinaryIO, headers: Mapping[str, str]) -> Iterator[bytes]:
    left = int(headers.get("content-length", 0))
    while left:
        piece = stream.read(min(left, CHUNK))
        if not piece:
            raise ConnectionError("the client went away")
        left -= len(piece)
        yield piece


def _chunked(stream: BinaryIO) -> Iterator[bytes]:
    while size := int(stream.readline().split(b";")[0], 16):
        yield stream.read(size)
        stream.readline()
    stream.readline()


Service = Callable[[Ask], Answer]


class Server(ThreadingHTTPServer):
    """Services by name; `hosts` says whose a host name is, and the first answers under any other."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self,
        address: tuple[str, int],
        services: Mapping[str, Service],
        folder: Path,
        hosts: Mapping[str, str] | None = None,
    ) -> None:
        self.services, self.folder, self.hosts = services, folder, hosts or {}
        self.scheme = "http"
        self.lock = threading.Lock()
        super().__init__(address, Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no event; all else is."""
        if not isinstance(sys.exc_info()[1], OSError):
            traceback.print_exc()

    @property
    def url(self) -> str:
        """Where it is, on its own address."""
        return f"{self.scheme}://{self.server_address[0]!s}:{self.server_address[1]}"

    def name(self, host: str) -> str:
        """The service that answers under a host name."""
        return self.hosts.get(host.partition(":")[0]) or next(iter(self.services))

    def will(self, *lines: str, service: str = "hub") -> None:
        """Add lines to a service's script."""
        with self.lock, (self.folder / f"{service}.script").open("a") as script:
            script.writelines(f"{line}\n" for line in lines)

    def asked(self, service: str = "hub") -> list[str]:
        """The lines of a service's log."""
        log = self.folder / f"{service}.log"
        return log.read_text().splitlines() if log.exists() else []

    def spoil(self, service: str, what: str) -> list[str]:
        """The first words of the script that mean this question; the script then lacks them."""
        script = self.folder / f"{service}.script"
        with self.lock:
            lines = script.read_text().splitlines() if script.exists() else []
            for number, line in enumerate(lines):
                pattern, words = line[1:].split(maxsplit=1) if line.startswith("~") else ("", line)
                if re.search(pattern, what):
                    del lines[number]
                    script.write_text("".join(f"{left}\n" for left in lines))
                    return words.split()
        return []

    def note(self, service: str, line: str) -> None:
        """A line for the log."""
        with self.lock, (self.folder / f"{service}.log").open("a") as log:
            log.write(line + "\n")


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Server

    def _turn(self) -> None:
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        what = f"{self.command} {unquote(parts.path)}"
        host = headers.get("host", "")
        name = self.server.name(host)
        spoiled = [] if self.command == "HEAD" else self.server.spoil(name, what)
        self.server.note(name, f"{what} {headers.get('range', '-')} {' '.join(spoiled) or '-'}")
        if spoiled[:1] == ["drop"]:
            self.rfile.read(int(spoiled[1]))
            self.close_connection = True
            return
        body = Body(self.rfile, headers)  # type: ignore[arg-type]  # a buffered reader
        ask = Ask(self.command, f"{self.server.scheme}://{host}", parts.path, parts.query, headers, body)
        answer = _instead(spoiled) or self.server.services[name](ask)
        for _ in body.pieces():
            pass
        self._say(answer, int(spoiled[1]) if spoiled[:1] == ["short"] else None)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _turn  # noqa: N815  # http.server's names

    def _say(self, answer: Answer, short: int | None) -> None:
        size = answer.body.path.stat().st_size if isinstance(answer.body, File) else len(answer.body)
        status, start, end, headers = _part(answer, size, dict(self.headers))
        self.send_response(status)
        for name, value in {"Content-Length": str(end - start), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if short is not None:
            end, self.close_connection = min(end, start + short), True
        if self.command != "HEAD":
            for piece in _pieces(answer.body, start, end):
                self.wfile.write(piece)

    def log_message(self, *_: object) -> None:
        """Nothing: the server's log says it shorter."""


def _instead(spoiled: list[str]) -> Answer | None:
    if not spoiled or spoiled[0] == "short":
        return None
    if spoiled[0] == "html":
        return Answer(int(spoiled[1]), PAGE, {"Content-Type": "text/html"})
    headers = {"Retry-After": spoiled[1]} if len(spoiled) > 1 else {}
    return Answer(int(spoiled[0]), b"too many requests" if spoiled[0] == "429" else b"no", headers)


def _part(answer: Answer, size: int, asked: Mapping[str, str]) -> tuple[int, int, int, dict[str, str]]:
    """Status, first byte, end and headers: files are given in ranges too."""
    headers = dict(answer.headers)
    wanted = re.match(r"bytes=(\d*)-(\d*)\Z", asked.get("Range", ""))
    tag = headers.get("ETag", "")
    if answer.status != 200 or not isinstance(answer.body, File):
        return answer.status, 0, size, headers
    headers |= {"Accept-Ranges": "bytes"}
    if not wanted or asked.get("If-Range", tag) != tag:
        return 200, 0, size, headers
    start = int(wanted[1]) if wanted[1] else max(0, size - int(wanted[2]))
    end = min(size, int(wanted[2]) + 1) if wanted[1] and wanted[2] else size
    if start >= size:
        return 416, 0, 0, {**headers, "Content-Range": f"bytes */{size}"}
    return 206, start, end, {**headers, "Content-Range": f"bytes {start}-{end - 1}/{size}"}


def _pieces(body: bytes | File, start: int, end: int) -> Iterator[bytes]:
    if not isinstance(body, File):
        yield body[start:end]
        return
    with body.path.open("rb") as file:
        file.seek(start)
        while piece := file.read(min(CHUNK, end - file.tell())):
            yield piece


@contextlib.contextmanager
def serving(services: Mapping[str, Service], folder: Path) -> Iterator[Server]:
    """A server on a free port of this machine's own address, until the block ends."""
    server = Server(("127.0.0.1", 0), services, folder)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
