"""A user of Alps's twin who builds: a base in the registry, an index, and a run of one small package."""

from __future__ import annotations

import json
from typing import Any

from tests.twin.life import Twin
from tests.twin.services.inside import python_image, ready, shadow
from tests.twin.user import User

BASE = "nvcr.io/nvidia/pytorch:24.04-py3"
RUN = """
name    = "NAME"
cluster = "alps"

[resources]
nodes = 1
time  = "5m"

[environment]
packages = ["twin-pure==PURE"]

[environment.edf]
base = "BASE"
OPTIONS

[train]
use = "command"

[train.command]
argv = ["python3", "-c", "import sys, twin_pure; print('twin-pure', twin_pure.VERSION, sys.prefix)"]
"""
UV = (
    "python3 -m venv /opt/uv && /opt/uv/bin/pip install -q uv==0.13.8 && ln -sf /opt/uv/bin/uv /usr/local/bin"
)


def prepared(twin: Twin) -> Twin:
    """The base of the document in the registry, the index under its real name, and uv on the login node."""
    ready(twin)
    python_image(twin, BASE)
    shadow(twin)
    if twin.run("test", "-e", "/usr/local/bin/uv").returncode:
        done = twin.run("bash", "-euc", UV, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
    return twin


class Builder(User):
    """Somebody whose run needs an image."""

    def __init__(self, twin: Twin, title: str, name: str = "alice") -> None:
        super().__init__(twin, name, folder=title)
        self.title = title
        self.images = twin.site.fill(twin.site.cluster.storage["images"].path, name)
        self.write()

    def write(self, pure: str = "1.0", **options: str) -> None:
        """The run file with these options of the technology."""
        said = "\n".join(f'{key} = "{value}"' for key, value in ({"name": self.title} | options).items())
        text = RUN.replace("NAME", self.title).replace("PURE", pure)
        self.put("run.toml", text.replace("BASE", BASE).replace("OPTIONS", said))

    def train(self, pure: str = "1.0", **options: str) -> dict[str, Any]:
        """Submit, and wait for the end."""
        self.write(pure, **options)
        self.submit()
        return self.until("done", seconds=240)

    def problems(self) -> dict[str, str]:
        """What `plan` warns of, with its hints."""
        done = self.hpctrain("plan", "run.toml", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        found = json.loads(done.stdout)["plan"]["problems"]
        return {row["code"]: row["hint"] for row in found}

    def log(self) -> str:
        """The end of every step's log: a build's says more than the training's."""
        folder = f"{self.twin.site.fill(self.twin.site.cluster.storage['runs'].path, self.name)}/{self.title}"
        return self.twin.sh(f"cd {folder} && cd $(ls -td */ | head -1) && tail -n 15 logs/*", user=self.name)

    def lies(self, pattern: str) -> list[str]:
        """What is published among the images."""
        return sorted(self.twin.sh(f"cd {self.images} && ls -d {pattern} 2>/dev/null || true").split())

    def there(self, found: dict[str, Any]) -> set[str]:
        """The steps whose work was there before the run began."""
        rows = self.twin.sh(f"cat {found['path']}/record.jsonl").splitlines()
        events = [json.loads(row) for row in rows]
        return {row["step"] for row in events if row["event"] == "step-exists"}

    def printed(self, found: dict[str, Any]) -> str:
        """The log of the training."""
        return self.twin.sh(f"cat {found['path']}/logs/train.log")
