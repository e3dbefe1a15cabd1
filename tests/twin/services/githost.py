"""A git host: git's own http-backend over bare repositories below a folder.

A repository with a file `private` in it asks for the token `git_twin`, as a password or a bearer's.
"""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path
from urllib.parse import unquote

from tests.twin.services.http import Answer, Ask

BACKEND = "/usr/lib/git-core/git-http-backend"
TOKEN = "git_twin"


class GitHost:
    """A service for `https://HOST/OWNER/NAME.git`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, ask: Ask) -> Answer:
        """Hand the question to git, if it is about a repository that the asker may see."""
        parts = unquote(ask.path).strip("/").split("/")
        name = "/".join(parts[:2])
        bare = self.folder / (name if name.endswith(".git") else f"{name}.git")
        if ".." in parts or not bare.is_dir():
            return Answer(404, b"Repository not found.\n")
        if ((bare / "private").exists() or "git-receive-pack" in ask.path + ask.query) and not _known(ask):
            return Answer(401, b"Repository not found.\n", {"WWW-Authenticate": 'Basic realm="git"'})
        return _backend(ask, bare, "/".join(parts[2:]))


def _known(ask: Ask) -> bool:
    how, _, said = ask.headers.get("authorization", "").partition(" ")
    if how.lower() == "basic":
        said = base64.b64decode(said).decode().partition(":")[2]
    return said == TOKEN


def _backend(ask: Ask, bare: Path, rest: str) -> Answer:
    body = ask.body.read()
    env = {
        "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(bare.parent), "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": f"/{bare.name}/{rest}", "QUERY_STRING": ask.query, "REQUEST_METHOD": ask.method,
        "CONTENT_TYPE": ask.headers.get("content-type", ""), "CONTENT_LENGTH": str(len(body)),
        "HTTP_CONTENT_ENCODING": ask.headers.get("content-encoding", ""), "REMOTE_USER": "alice",
        "GIT_PROTOCOL": ask.headers.get("git-protocol", ""), "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
    }  # fmt: skip
    done = subprocess.run((BACKEND,), input=body, capture_output=True, env=env, timeout=120)
    head, _, said = done.stdout.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
    return Answer(int(headers.pop("Status", "200").split()[0]), said, headers)
