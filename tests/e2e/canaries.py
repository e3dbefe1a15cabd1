"""A token of its own for every secret that a run may meet, and the search for each of them afterwards."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import threading
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
from attrs import field, frozen

from tests.e2e.product import Product

TAKEN = {"HF_TOKEN": "huggingface", "WANDB_API_KEY": "netrc", "MINE": "file", "OTHER": "variable"}
"""Variable of the task -> the secret that it holds."""
SECRETS = '\nsecrets = ["huggingface", "wandb", "mine", "other"]\n'
SOURCES = {
    "mine.token": "file",
    ".netrc": "netrc",
    ".git-credentials": "git",
    ".config/containers/auth.json": "registry",
    ".config/pip/pip.conf": "pip",
    "code/.git/config": "remote",
}
"""File below the home -> the secret that the user keeps there."""
SETTINGS = """\
[secrets]
mine  = { file = "~/mine.token" }
other = { env = "SHELL_TOKEN" }
"""


@frozen
class Canaries:
    """Secrets that no rule knows by its shape: they are leaked, and hidden, by their values alone."""

    values: dict[str, str] = field(
        factory=lambda: {
            name: f"canary{uuid.uuid4().hex}"
            for name in (*TAKEN.values(), *SOURCES.values(), "bystander", "proxy", "index", "mirror")
        }
    )

    def given_to(self, user: Product) -> Product:
        """The user with secrets in variables, and in files of which each holds one."""
        secret = self.values
        registry = base64.b64encode(f"me:{secret['registry']}".encode()).decode()
        texts = {
            "mine.token": f"{secret['file']}\n",
            ".netrc": f"machine api.wandb.ai login user password {secret['netrc']}\n",
            ".git-credentials": f"https://me:{secret['git']}@git.example.org\n",
            ".config/containers/auth.json": json.dumps({"auths": {"r.example.org": {"auth": registry}}}),
            ".config/pip/pip.conf": f"[global]\nextra-index-url = http://me:{secret['pip']}@127.0.0.1:9/x\n",
            ".config/hpctrain/settings.toml": SETTINGS,
            "code/train.sh": "",
        }
        for name, text in texts.items():
            (user.home / name).parent.mkdir(parents=True, exist_ok=True)
            (user.home / name).write_text(text)
            (user.home / name).chmod(0o600)
        remote = f"https://me:{secret['remote']}@git.example.org/code.git"
        for words in (("init", "-q"), ("remote", "add", "origin", remote)):
            subprocess.run(("git", "-C", str(user.home / "code"), *words), check=True)
        variables = {
            "HF_TOKEN": self.values["huggingface"],
            "SHELL_TOKEN": self.values["variable"],
            "AWS_SECRET_ACCESS_KEY": self.values["bystander"],
            "http_proxy": f"http://me:{self.values['proxy']}@127.0.0.1:9",
            "PIP_INDEX_URL": f"http://me:{self.values['index']}@127.0.0.1:9/simple",
            "HF_ENDPOINT": f"http://me:{self.values['mirror']}@127.0.0.1:9",
        }
        return attrs.evolve(user, environ={**user.environ, **variables})

    def program(self) -> str:
        """A line of bash that says the digests of the tokens that it got, and of none else."""
        digests = "; ".join(f'printf %s "${name}" | sha256sum' for name in TAKEN)
        return f"{digests}; echo bystander: ${{AWS_SECRET_ACCESS_KEY-none}}"

    def received(self, log: str) -> bool:
        """Whether the program had each token, and not what nobody named."""
        digests = [hashlib.sha256(self.values[secret].encode()).hexdigest() for secret in TAKEN.values()]
        return all(digest in log for digest in digests) and "bystander: none" in log

    def leaks(self, user: Product, *texts: str) -> list[str]:
        """Each secret with the file, or the text, in which it is; its own file apart."""
        sources = {user.home / name for name in SOURCES}
        files = [
            p for at in (user.home, user.folder) for p in at.rglob("*") if p.is_file() and p not in sources
        ]
        contents: Iterable[tuple[str, bytes]] = (
            *((str(path), path.read_bytes()) for path in files),
            *((f"text {number}: {text[:60]}", text.encode()) for number, text in enumerate(texts)),
        )
        return [
            f"{name} in {where}"
            for where, content in contents
            for name, value in self.values.items()
            if any(form in content for form in forms(value))
        ]

    @contextmanager
    def watched(self) -> Iterator[set[str]]:
        """The secrets in command lines of any process that runs meanwhile: everybody reads these."""
        leaked: set[str] = set()
        over = threading.Event()

        def watch() -> None:
            while not over.is_set():
                for path in Path("/proc").glob("[0-9]*"):
                    try:
                        words = (path / "cmdline").read_bytes()
                    except OSError:
                        continue  # it has ended
                    leaked.update(
                        name
                        for name, value in self.values.items()
                        if any(form in words for form in forms(value))
                    )
                over.wait(0.005)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield leaked
        finally:
            over.set()
            watcher.join()


def forms(value: str) -> tuple[bytes, bytes]:
    """A secret as it is, and as the login of a registry or of HTTP, which is no harder to read."""
    return value.encode(), base64.b64encode(f"me:{value}".encode())
