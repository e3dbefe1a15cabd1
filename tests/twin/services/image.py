"""Put a small image for two architectures into the twin's registry, by the registry's own interface.

usage: python3 -m tests.twin.services.image REGISTRY/NAME:TAG [FOLDER]     (in a twin, where busybox is)
What is in FOLDER comes on top, as a layer of its own.
The arm64 half has the same x86_64 programs: only what its manifest says, and /marker, are arm64.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import tarfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

OCI = "application/vnd.oci.image"
FOLDERS = (
    "bin",
    "proc",
    "sys",
    "dev",
    "tmp",
    "etc",
    "root",
    "home",
    "run",
    "var",
    "var/tmp",
    "user-software",
)
FILE = "etc/pip/constraint.txt"
"""Where NVIDIA's images have the file that their pip obeys."""
COMMANDS = ("sh", "cat", "env", "pwd", "ls", "touch", "id", "uname", "mkdir", "cp")


def layer(architecture: str) -> bytes:
    """A file system as a tar archive."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for folder in FOLDERS:
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder.endswith("tmp") else 0o755
            archive.addfile(entry)
        for command in COMMANDS:
            entry = tarfile.TarInfo(f"bin/{command}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(entry)
        passwd = b"root:x:0:0:root:/root:/bin/sh\n"
        files = {"bin/busybox": Path("/bin/busybox").read_bytes(), "marker": f"{architecture}\n".encode()}
        for path, body in {**files, "etc/passwd": passwd, "etc/group": b"root:x:0:\n"}.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(body), 0o755 if path.startswith("bin/") else 0o644
            archive.addfile(entry, io.BytesIO(body))
    return made.getvalue()


def copied(folder: str) -> bytes:
    """A folder's content as a tar archive."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        archive.add(folder, arcname=".")
    return made.getvalue()


class Registry:
    """One repository of a registry."""

    def __init__(self, host: str, name: str) -> None:
        self.url = f"https://{host}/v2/{name}"

    def blob(self, kind: str, body: bytes) -> dict[str, Any]:
        """Upload a blob; gives its descriptor."""
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        place = self._send("POST", f"{self.url}/blobs/uploads/", b"", "")
        there = f"{place}{'&' if '?' in place else '?'}digest={digest}"
        self._send("PUT", there, body, "application/octet-stream")
        return {"mediaType": f"{OCI}.{kind}", "digest": digest, "size": len(body)}

    def manifest(self, kind: str, said: dict[str, Any], tag: str = "") -> dict[str, Any]:
        """Upload a manifest; gives its descriptor."""
        media = f"{OCI}.{kind}.v1+json"
        body = json.dumps({"schemaVersion": 2, "mediaType": media, **said}).encode()
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        self._send("PUT", f"{self.url}/manifests/{tag or digest}", body, media)
        return {"mediaType": media, "digest": digest, "size": len(body)}

    def _send(self, method: str, url: str, body: bytes, kind: str) -> str:
        ask = urllib.request.Request(url, data=body, method=method, headers={"Content-Type": kind})
        with urllib.request.urlopen(ask, timeout=30) as answer:
            return str(answer.headers.get("Location", ""))


def push(reference: str, folder: str = "") -> str:
    """Put the image there; gives the digest of its index."""
    host, _, rest = reference.partition("/")
    name, _, tag = rest.partition(":")
    registry = Registry(host, name)
    constrained = [f"PIP_CONSTRAINT=/{FILE}"] if folder and Path(folder, FILE).exists() else []
    manifests = []
    for architecture in ("amd64", "arm64"):
        tars = [layer(architecture), *([copied(folder)] if folder else [])]
        platform = {"architecture": architecture, "os": "linux"}
        ids = [f"sha256:{hashlib.sha256(tar).hexdigest()}" for tar in tars]
        config = {
            **platform, "rootfs": {"type": "layers", "diff_ids": ids},
            "config": {"Env": ["PATH=/bin", "FROM_IMAGE=yes", *constrained], "Cmd": ["/bin/sh"]},
        }  # fmt: skip
        said = {
            "config": registry.blob("config.v1+json", json.dumps(config).encode()),
            "layers": [registry.blob("layer.v1.tar+gzip", gzip.compress(tar, 1, mtime=0)) for tar in tars],
        }
        manifests.append({**registry.manifest("manifest", said), "platform": platform})
    return str(registry.manifest("index", {"manifests": manifests}, tag)["digest"])


if __name__ == "__main__":
    try:
        print(push(*sys.argv[1:]))
    except (urllib.error.URLError, ValueError) as error:
        sys.exit(f"{sys.argv[1]}: {error}")
