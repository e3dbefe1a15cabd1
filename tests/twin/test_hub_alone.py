"""The real hub client against the hub alone on loopback: uploads, branches, refusals and broken lines."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import needs
from tests.twin.services.http import Server
from tests.twin.services.hub import serve

HEAD = """
import json, sys, warnings
warnings.simplefilter("ignore")
from huggingface_hub import HfApi, errors
api = HfApi()
folder = sys.argv[1]
"""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Server]:
    """A hub with one model in a folder of its own."""
    laid = tmp_path / "hub/models/org/laid"
    laid.mkdir(parents=True)
    (laid / "config.json").write_text("{}")
    (laid / "model.safetensors").write_bytes(os.urandom(12_000_000))
    with serve(tmp_path / "hub") as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Something to upload."""
    made = tmp_path / "up"
    (made / "sub").mkdir(parents=True)
    (made / "README.md").write_text("---\nlicense: mit\n---\n# x\n")
    (made / "sub/model.safetensors").write_bytes(os.urandom(2_500_000))
    return made


def client(hub: Server, folder: Path, code: str, token: str = "hf_twin") -> Any:
    """Run `code` with the real client; gives what it prints last as JSON."""
    python = os.environ.get("HPCTRAIN_TORCH_PYTHON", "")
    needs("torch", bool(python), "HPCTRAIN_TORCH_PYTHON names no interpreter with huggingface_hub")
    env = {
        "HF_ENDPOINT": hub.url, "HF_HOME": str(folder.parent / "home"), "HF_TOKEN": token,
        "PATH": "/usr/bin:/bin", "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }  # fmt: skip
    argv = (python, "-c", HEAD + code, str(folder))
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


UPLOAD = """
api.create_repo("org/exp", exist_ok=True)
for step in (10, 20):
    api.create_branch("org/exp", branch=f"global_step{step}", exist_ok=True)
    api.upload_folder(repo_id="org/exp", folder_path=folder, revision=f"global_step{step}")
refs = {b.name: b.target_commit for b in api.list_repo_refs("org/exp").branches}
last = {"revision": "global_step20"}
titles = [c.title for c in api.list_repo_commits("org/exp", **last)]
print(json.dumps([refs, api.list_repo_files("org/exp", **last), titles]))
"""


def test_revisions_are_uploaded_and_listed(hub: Server, folder: Path) -> None:
    refs, files, titles = client(hub, folder, UPLOAD)
    assert set(refs) == {"main", "global_step10", "global_step20"}
    assert len(set(refs.values())) == 2
    assert files == ["README.md", "sub/model.safetensors"]
    assert titles == ["Upload folder using huggingface_hub", "initial commit"]
    puts = [line for line in hub.asked() if line.startswith("PUT /lfs/")]
    assert len(puts) == 1, "the second revision has the same large file"
    before = len([line for line in hub.asked() if "/commit/" in line])
    assert client(hub, folder, UPLOAD)[0] == refs
    assert len([line for line in hub.asked() if "/commit/" in line]) == before


DOWNLOAD = """
from huggingface_hub import snapshot_download
import hashlib, pathlib
got = pathlib.Path(snapshot_download("org/exp", revision="global_step10", local_dir=folder + "/got"))
print(json.dumps(hashlib.sha256((got / "sub/model.safetensors").read_bytes()).hexdigest()))
"""


def test_what_was_uploaded_comes_back_in_spite_of_everything(hub: Server, folder: Path) -> None:
    hub.will("~preupload 429 1", "~objects/batch 503", "~^PUT 429 1", "~^PUT 500", "~^PUT drop 1000")
    client(hub, folder, UPLOAD)
    assert (hub.folder / "hub.script").read_text() == ""
    assert not [p for p in (hub.folder / ".objects").iterdir() if len(p.name) != 64]
    assert (
        client(hub, folder, DOWNLOAD)
        == hashlib.sha256((folder / "sub/model.safetensors").read_bytes()).hexdigest()
    )


def test_a_broken_download_goes_on_where_it_was(hub: Server, folder: Path) -> None:
    hub.will("~resolve/.*safetensors short 11000000")
    code = DOWNLOAD.replace("sub/", "").replace('"org/exp", revision="global_step10"', '"org/laid"')
    laid = hub.folder / "models/org/laid/model.safetensors"
    assert client(hub, folder, code) == hashlib.sha256(laid.read_bytes()).hexdigest()
    assert [line for line in hub.asked() if f"bytes={10 << 20}-" in line], (
        "the client writes ten MiB at a time"
    )


REFUSALS = """
from huggingface_hub import hf_hub_download
def why(call):
    try:
        call()
    except Exception as error:
        response = getattr(error, "response", None)
        return [type(error).__name__, response.status_code if response is not None else 0]
    return ["done", 200]
file = {"path_or_fileobj": b"x", "path_in_repo": "x", "repo_id": "org/laid"}
other = HfApi(token=False)
wrong = HfApi(token="hf_other")
read = HfApi(token="hf_read")
print(json.dumps({
    "upload without": why(lambda: other.upload_file(**file)),
    "upload reader": why(lambda: read.upload_file(**file)),
    "gated without": why(lambda: other.hf_hub_download("org/gated", "config.json")),
    "gated stranger": why(lambda: wrong.hf_hub_download("org/gated", "config.json")),
    "gated reader": why(lambda: read.hf_hub_download("org/gated", "config.json")),
    "no branch": why(lambda: api.upload_file(**file, revision="no")),
    "branch twice": why(lambda: [api.create_branch("org/laid", branch="b") for _ in (1, 2)]),
    "no repository": why(lambda: api.model_info("org/none")),
    "stale parent": why(lambda: api.upload_file(**file, parent_commit="0" * 40)),
}))
"""


def test_refusals_are_those_of_the_hub(hub: Server, folder: Path) -> None:
    gated = hub.folder / "models/org/gated"
    gated.mkdir()
    (gated / "config.json").write_text("{}")
    (gated / ".gated").touch()
    assert client(hub, folder, REFUSALS) == {
        "upload without": ["HfHubHTTPError", 401],
        "upload reader": ["HfHubHTTPError", 403],
        "gated without": ["GatedRepoError", 401],
        "gated stranger": ["GatedRepoError", 403],
        "gated reader": ["done", 200],
        "no branch": ["RevisionNotFoundError", 404],
        "branch twice": ["HfHubHTTPError", 409],
        "no repository": ["RepositoryNotFoundError", 404],
        "stale parent": ["HfHubHTTPError", 412],
    }


def test_a_proxy_may_answer_instead(hub: Server, folder: Path) -> None:
    hub.will("html 403", "html 200")
    code = """
said = []
import httpx2 as http
for _ in (1, 2):
    answer = http.get(api.endpoint + "/api/models/org/laid")
    said.append([answer.status_code, answer.headers["content-type"], "<html>" in answer.text])
print(json.dumps(said))
"""
    assert client(hub, folder, code) == [[403, "text/html", True], [200, "text/html", True]]


def test_what_is_laid_in_a_folder_is_the_newest_commit(hub: Server, folder: Path) -> None:
    code = "print(json.dumps([api.model_info('org/laid').sha, api.list_repo_files('org/laid')]))"
    first = client(hub, folder, code)
    (hub.folder / "models/org/laid/more.txt").write_text("more")
    second = client(hub, folder, code)
    assert second[1] == [*first[1], "more.txt"]
    assert second[0] != first[0]
