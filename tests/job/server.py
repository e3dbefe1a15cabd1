"""A web server on 127.0.0.1 that misbehaves as it is told: once per request, in order."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers from the server's script of misbehaviours, then honestly from its files."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.seen.append((self.path, dict(self.headers)))
        if self.server.script:
            self.server.script.pop(0)(self)
        else:
            honest(self)

    def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        """A whole answer."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # nobody has to read it to its end
            self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Nothing: the tests look at `seen`."""


class Server(ThreadingHTTPServer):
    """`files` by path, `script` of answers that come first, `seen` requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.script: list[Answer] = []
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.etag = '"one"'
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def document(self, path: str, value: Any) -> None:
        self.files[path] = json.dumps(value).encode()

    @property
    def ranges(self) -> list[str]:
        return [headers.get("Range", "") for _, headers in self.seen]


def honest(handler: Handler) -> None:
    """The file, or the part that was asked for."""
    body = handler.server.files.get(handler.path.split("?")[0])
    if body is None:
        handler.say(404)
        return
    asked, etag = handler.headers.get("Range"), handler.server.etag
    if asked and handler.headers.get("If-Range", etag) == etag:
        start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= len(body):
            handler.say(416)
            return
        part = {"Content_Range": f"bytes {start}-{len(body) - 1}/{len(body)}", "ETag": etag}
        handler.say(206, body[start:], **part)
    else:
        handler.say(200, body, ETag=etag)


def status(code: int, **headers: str) -> Answer:
    """Refuse with this status."""
    return lambda handler: handler.say(code, b"no", **headers)


def short(count: int) -> Answer:
    """Announce everything, send `count` bytes, hang up."""

    def answer(handler: Handler) -> None:
        body = handler.server.files[handler.path]
        handler.close_connection = True
        handler.say(200, body[:count], Content_Length=str(len(body)), ETag=handler.server.etag)

    return answer


def page(handler: Handler) -> None:
    """What a proxy says when it wants a log-in."""
    handler.say(200, b"<html>please log in</html>", Content_Type="text/html")
