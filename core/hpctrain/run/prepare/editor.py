"""The command line of Visual Studio Code for a tunnel: which archive, fixed by its content."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from hpctrain.errors import ConfigError, NotReachable
from hpctrain.model.run import Asset
from hpctrain.run.system import files
from hpctrain.run.this_computer import state_folder
from hpctrain_job.files import documents

SERVICE = "https://update.code.visualstudio.com"
"""Answers with the newest release for a platform, its address and its sha256; HPCTRAIN_VSCODE is a mirror."""
PLATFORMS = {"x86_64": "cli-alpine-x64", "aarch64": "cli-alpine-arm64"}
"""The statically linked program of each architecture: it runs on any distribution."""
CODE = re.compile(r"https://\S*/login/device\b")
DEVICE = re.compile(r"\b[A-Z0-9]{4}-[A-Z0-9]{4}\b")
LINK = re.compile(r"https://\S+/tunnel/\S+")


def archive(arch: str, environ: Mapping[str, str], *, anew: bool = False) -> Asset:
    """The archive for compute nodes of `arch`: as fixed before, else today's, which is kept from then on."""
    machine = os.uname().machine if arch == "native" else arch
    if machine not in PLATFORMS:
        raise ConfigError.of(
            "no-editor", f"there is no editor build for {machine}", hint="--cli URL --sha256 HEX"
        )
    pin_file = state_folder(environ) / f"editor-{machine}.json"
    if pin_file.is_file() and not anew:
        return _asset(documents.read(pin_file))
    asset = _asset(_newest(PLATFORMS[machine], environ))
    files.make_folder(pin_file.parent)
    files.write(pin_file, json.dumps({"url": asset.url, "sha256hash": asset.sha256}) + "\n")
    return asset


def _newest(platform: str, environ: Mapping[str, str]) -> Any:
    from hpctrain_job.downloads.web import Failed, Patience, get_json  # once a version of the editor

    service = environ.get("HPCTRAIN_VSCODE", SERVICE)
    try:
        return get_json(
            f"{service}/api/update/{platform}/stable/latest", patience=Patience(tries=3, longest=20)
        )
    except Failed as error:
        raise NotReachable.of(
            "editor", f"cannot look up the editor's release: {error}", hint="--cli URL --sha256 HEX"
        ) from None


def _asset(release: Any) -> Asset:
    url, sha256 = (str(release.get(key, "")) for key in ("url", "sha256hash"))
    if not (url and re.fullmatch(r"[0-9a-f]{64}", sha256)):
        raise NotReachable.of("editor", "the editor's release has no address with a sha256")
    return Asset(url=url, sha256=sha256)


def tunnel_name(run: str) -> str:
    """What the program takes for a name: 20 letters, digits and hyphens; any other ends it at once."""
    return re.sub(r"[^A-Za-z0-9]+", "-", run)[:20].strip("-") or "run"


def words(text: str) -> dict[str, str]:
    """What a person needs of what the program said: where to log in, with which code, then the link."""
    matches = {"login": CODE.search(text), "code": DEVICE.search(text), "link": LINK.search(text)}
    return {name: match.group().rstrip(".") for name, match in matches.items() if match}
