"""A token of its own for every secret that a run may meet, and the search for each of them afterwards."""

from __future__ import annotations

import hashlib
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
SETTINGS = """\
[secrets]
mine  = { file = "~/mine.token" }
other = { env = "SHELL_TOKEN" }
"""


@frozen
class Canaries:
    """Secrets that no rule knows by its shape: they are found, and hidden, by their values alone."""

    values: dict[str, str] = field(
        factory=lambda: {
            name: f"canary{uuid.uuid4().hex}"
            for name in (*TAKEN.values(), "bystander", "proxy", "index", "mirror")
        }
    )

    def given_to(self, user: Product) -> Product:
        """The user with secrets in variables, and in two files of which each holds one."""
        (user.home / "mine.token").write_text(f"{self.values['file']}\n")
        login = f"machine api.wandb.ai login user password {self.values['netrc']}\n"
        (user.home / ".netrc").write_text(login)
        settings = user.home / ".config/hpctrain/settings.toml"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(SETTINGS)
        for name in ("mine.token", ".netrc"):
            (user.home / name).chmod(0o600)
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

    def seen(self, user: Product, *texts: str) -> list[str]:
        """Each secret with the file, or the text, in which it is; its own file apart."""
        sources = {user.home / "mine.token", user.home / ".netrc"}
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
            if value.encode() in content
        ]

    @contextmanager
    def watched(self) -> Iterator[set[str]]:
        """The command lines with a secret in them, of every process that runs meanwhile."""
        found: set[str] = set()
        over = threading.Event()

        def watch() -> None:
            while not over.is_set():
                for path in Path("/proc").glob("[0-9]*/cmdline"):
                    try:
                        words = path.read_bytes()
                    except OSError:
                        continue  # it has ended
                    found.update(n for n, value in self.values.items() if value.encode() in words)
                over.wait(0.005)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield found
        finally:
            over.set()
            watcher.join()
