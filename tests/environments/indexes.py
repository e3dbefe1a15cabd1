"""Package indexes and proxies on 127.0.0.1, as honest or as broken as a test wants them."""

from __future__ import annotations

import base64
import socket
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LOGIN = ("worker", "c4nary-t0ken-of-the-index")
"""Who may read an index that wants a login."""


class Handler(BaseHTTPRequestHandler):
    """The wheels and archives of a folder as a simple index, or one status for every request."""

    server: Index

    def do_GET(self) -> None:
        self.server.requests.append((self.path, self.headers.get("Authorization", "")))
        if self.server.status != 200:
            self.answer(self.server.status)
        elif self.server.private and self.headers.get("Authorization") != basic():
            self.answer(401)
        else:
            self._file()

    do_HEAD = do_CONNECT = do_GET  # noqa: N815  (the base class calls them so)

    def answer(self, status: int, body: bytes = b"", kind: str = "text/html") -> None:
        """A whole answer; one that asks for a login says how."""
        self.send_response(status)
        challenge = {401: "WWW-Authenticate", 407: "Proxy-Authenticate"}.get(status)
        if challenge:
            self.send_header(challenge, 'Basic realm="packages"')
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _file(self) -> None:
        folder, parts = self.server.folder, self.path.strip("/").split("/")
        if parts[0] == "simple" and len(parts) == 2:
            names = [f.name for f in folder.iterdir() if f.name.partition("-")[0].lower() == parts[1].lower()]
            links = "".join(f'<a href="/files/{name}">{name}</a>' for name in sorted(names))
            self.answer(200 if names else 404, links.encode())
        elif parts[0] == "files" and (folder / parts[-1]).is_file():
            self.answer(200, (folder / parts[-1]).read_bytes(), "application/octet-stream")
        else:
            self.answer(404)

    def log_message(self, *args: Any) -> None:
        """Nothing: the tests look at `requests`."""


class Index(ThreadingHTTPServer):
    """An index of `folder`; `status` other than 200 is all that it answers, `private` wants LOGIN."""

    daemon_threads = True

    def __init__(
        self,
        folder: Path = Path("/nonexistent"),
        *,
        status: int = 200,
        private: bool = False,
        tls: tuple[Path, Path] | None = None,
    ) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.status, self.private = folder, status, private
        self.scheme = "https" if tls else "http"
        self.requests: list[tuple[str, str]] = []
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}/simple"

    @property
    def url_with_login(self) -> str:
        return f"{self.scheme}://{':'.join(LOGIN)}@{self.host}/simple"

    def close(self) -> None:
        """No more answers."""
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that does not trust us hangs up: that is what the test is about."""


def basic() -> str:
    """LOGIN as HTTP sends it."""
    return "Basic " + base64.b64encode(":".join(LOGIN).encode()).decode()


def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def authority(folder: Path) -> tuple[Path, tuple[Path, Path]]:
    """A certificate authority of this test's own, and what a server on 127.0.0.1 shows that it signed."""
    authority, key = folder / "ca.pem", folder / "ca.key"
    request, certificate, private = folder / "leaf.csr", folder / "leaf.pem", folder / "leaf.key"
    names = folder / "names"
    names.write_text("subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n")
    _openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=A site's authority"),
        *("-keyout", key, "-out", authority),
    )
    _openssl(
        *("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1"),
        *("-keyout", private, "-out", request),
    )
    _openssl(
        *("x509", "-req", "-days", "2", "-in", request, "-CA", authority, "-CAkey", key, "-CAcreateserial"),
        *("-extfile", names, "-out", certificate),
    )
    return authority, (certificate, private)


def _openssl(*words: str | Path) -> None:
    subprocess.run(("openssl", *words), check=True, capture_output=True, timeout=60)
