"""What environments made of images share: names, registries, headers, lists."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hpctrain.errors import ConfigError, NotReachable
from hpctrain.model.step import Pin
from hpctrain.session import Session
from hpctrain_job import sif
from hpctrain_plugins.environments import image
from hpctrain_plugins.environments.image import registry as registries
from tests.patience import PATIENCE

DIGEST = "sha256:" + "a" * 64
INDEX = {
    "manifests": [
        {"digest": DIGEST, "platform": {"architecture": "arm64", "os": "linux"}},
        {"digest": "sha256:" + "b" * 64, "platform": {"architecture": "amd64", "os": "linux"}},
        {"digest": "sha256:" + "c" * 64, "platform": {"architecture": "unknown", "os": "unknown"}},
    ]
}
ALONE = {"config": {"digest": "sha256:cfg"}}


class Registry(BaseHTTPRequestHandler):
    """A registry that wants a token, which it hands to everybody."""

    def do_GET(self) -> None:
        base = f"http://{self.headers['Host']}"
        if self.path.startswith("/token?"):
            self.say(200, {"token": "t"})
        elif self.headers.get("Authorization") != "Bearer t":
            self.say(401, {}, f'Bearer realm="{base}/token",service="here",scope="repository:a/b:pull"')
        else:
            pages: dict[str, Any] = {"manifests/1.0": INDEX, "manifests/one": ALONE}
            pages["blobs/sha256:cfg"] = {"architecture": "amd64"}
            found = pages.get(self.path.removeprefix("/v2/a/b/"))
            self.say(404 if found is None else 200, found)

    def say(self, code: int, body: Any, challenge: str = "") -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        if challenge:
            self.send_header("WWW-Authenticate", challenge)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def registry() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"localhost:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(5 * PATIENCE)


def asked(registry: str, tag: str) -> image.Image:
    return image.parse(f"{registry}/a/b:{tag}", "here")


def test_a_tag_is_the_digest_of_one_architecture(registry: str) -> None:
    assert registries.digest(asked(registry, "1.0"), "arm64", "here") == DIGEST


def test_a_manifest_alone_is_its_own_digest(registry: str) -> None:
    said = "sha256:" + hashlib.sha256(json.dumps(ALONE).encode()).hexdigest()
    assert registries.digest(asked(registry, "one"), "amd64", "here") == said


@pytest.mark.parametrize(
    ("tag", "arch", "has"), [("1.0", "ppc64le", "amd64 and arm64"), ("one", "arm64", "amd64")]
)
def test_an_image_for_other_machines_is_refused(registry: str, tag: str, arch: str, has: str) -> None:
    with pytest.raises(ConfigError) as caught:
        registries.digest(asked(registry, tag), arch, "here")
    (problem,) = caught.value.problems
    assert problem.code == "image-arch"
    assert f"is made for {has}, and the training nodes are {arch}" in problem.message


def test_a_tag_that_is_not_there(registry: str) -> None:
    with pytest.raises(ConfigError, match=r"has no a/b:2\.0"):
        registries.digest(asked(registry, "2.0"), "arm64", "here")


def test_a_registry_that_does_not_answer() -> None:
    with pytest.raises(NotReachable, match="localhost:9 does not answer") as caught:
        registries.digest(asked("localhost:9", "1"), "arm64", "here", "image = a path")
    assert caught.value.problems[0].hint == "image = a path"


@pytest.mark.parametrize(
    ("cluster", "base", "hint"),
    [
        ("alps", '[environment.edf]\nbase = "localhost:9/a/b:1"\n', "image = the path of a .sqsh"),
        ("alps", '[environment.edf]\nbase = "localhost:9/a/b:1"\nengine = "sarus"\n', ""),
        ("olivia", '[environment.apptainer]\nimage = "localhost:9/a/b:1"\n', "image = the path of a .sif"),
    ],
)
def test_a_lock_without_a_registry_names_what_the_environment_can_do(
    cluster: str, base: str, hint: str, tmp_path: Path
) -> None:
    file = tmp_path / "run.toml"
    command = '[train]\nuse = "command"\n[train.command]\nargv = ["true"]\n'
    file.write_text(f'name = "x"\ncluster = "{cluster}"\n{base}[resources]\ntime = "5m"\n{command}')
    with pytest.raises(NotReachable, match="localhost:9 does not answer") as caught:
        Session(file, environ={"HOME": str(tmp_path), "USER": "ada"}).relock()
    shown = caught.value.problems[0].hint
    assert shown.startswith(hint) if hint else not shown


def test_names() -> None:
    one = image.parse("docker://nvcr.io/nvidia/pytorch:25.06-py3", "here")
    assert (one.name, one.address) == ("pytorch-25.06-py3", "docker://nvcr.io/nvidia/pytorch:25.06-py3")
    pins = (Pin("nvcr.io/nvidia/pytorch:25.06-py3", "image", DIGEST),)
    pinned = image.parse("nvcr.io/nvidia/pytorch:25.06-py3", "here", pins)
    assert (pinned.address, pinned.key) == (f"docker://nvcr.io/nvidia/pytorch@{DIGEST}", DIGEST)
    assert image.parse("/data/x.sif", "here").path == "/data/x.sif"


@pytest.mark.parametrize("text", ["", "pytorch", "library/ubuntu:24.04", "x.sif", "nvcr.io/UPPER/x:1"])
def test_what_names_no_image_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        image.parse(text, "environment.apptainer.image")
    assert caught.value.problems[0].hint


def header(code: bytes) -> bytes:
    return b"\0" * 32 + b"SIF_MAGIC\0" + b"01\0" + code + b"\0" + bytes(range(16)) + b"rest"


@pytest.mark.parametrize(
    ("code", "arch", "ends"), [(b"04", "aarch64", 0), (b"02", "x86_64", 65), (b"00", "", 0)]
)
def test_the_architecture_of_a_file(tmp_path: Path, code: bytes, arch: str, ends: int) -> None:
    path = tmp_path / "x.sif"
    path.write_bytes(header(code))
    assert sif.arch(path) == arch
    assert sif.ident(path) == bytes(range(16)).hex()
    assert sif.main([str(path), "aarch64"]) == ends


def test_a_file_that_is_no_sif_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.sqsh"
    path.write_bytes(b"hsqs")
    assert (sif.arch(path), sif.ident(path), sif.main([str(path), "aarch64"])) == ("", "", 0)
