"""Snapshots of a hub that runs on this machine."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from hpctrain_job import hub
from hpctrain_job.downloads.proof import git_name
from hpctrain_job.downloads.room import NoSpace
from hpctrain_job.downloads.web import Failed, Refused, WrongContent
from hpctrain_job.files import documents
from tests.job.conftest import QUICK
from tests.job.server import Server, page, short, status

COMMIT = "a" * 40
FILES = {
    "config.json": b"{}",
    "model.safetensors": b"w" * 70_000,
    "pytorch_model.bin": b"p" * 10,
    "original/consolidated.00.pth": b"o" * 10,
    "tokenizer/vocab.txt": b"a b",
}


def publish(server: Server, tmp_path: Path, repo: str = "org/m", kind: str = "model") -> hub.Repo:
    rows = []
    for name, body in FILES.items():
        (tmp_path / "x").write_bytes(body)
        large = {"lfs": {"sha256": hashlib.sha256(body).hexdigest()}} if len(body) > 1000 else {}
        rows.append({"rfilename": name, "size": len(body), "blobId": git_name(tmp_path / "x"), **large})
        prefix = "/datasets" if kind == "dataset" else ""
        server.files[f"{prefix}/{repo}/resolve/{COMMIT}/{name}"] = body
    for revision in ("main", COMMIT):
        server.document(f"/api/{kind}s/{repo}/revision/{revision}", {"sha": COMMIT, "siblings": rows})
    (tmp_path / "x").unlink()
    return hub.Repo(repo, kind, endpoint=server.url)


def below(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without huggingface_hub, whatever this Python has."""
    monkeypatch.setattr(hub, "find_spec", lambda name: None)


def test_brings_what_training_needs(server: Server, tmp_path: Path) -> None:
    hub.snapshot(publish(server, tmp_path), "main", tmp_path / "s", patience=QUICK)
    assert below(tmp_path / "s") == {"config.json", "model.safetensors", "tokenizer/vocab.txt"}
    assert (tmp_path / "s/model.safetensors").read_bytes() == FILES["model.safetensors"]


def test_what_exceeds_the_sites_quota_is_not_begun(server: Server, tmp_path: Path) -> None:
    repo = publish(server, tmp_path)
    with pytest.raises(
        NoSpace, match=r"0\.0 GB are still to be written, and the site's quota there is 5e-05 GB"
    ):
        hub.snapshot(repo, "main", tmp_path / "s", quota_gb=5e-5, patience=QUICK)
    assert not [path for path, _ in server.seen if "/resolve/" in path]


def test_asks_for_the_listing_once(server: Server, tmp_path: Path) -> None:
    hub.snapshot(publish(server, tmp_path), "main", tmp_path / "s", patience=QUICK)
    assert len([path for path, _ in server.seen if path.startswith("/api/")]) == 1


def test_a_second_try_brings_only_what_is_missing(server: Server, tmp_path: Path) -> None:
    repo = publish(server, tmp_path)
    hub.snapshot(repo, "main", tmp_path / "s", patience=QUICK)
    (tmp_path / "s/config.json").unlink()
    (tmp_path / "s/tokenizer/vocab.txt").write_bytes(b"xyz")
    server.seen.clear()
    hub.snapshot(repo, "main", tmp_path / "s", patience=QUICK)
    fetched = {path.rsplit("/", 1)[-1] for path, _ in server.seen if "/resolve/" in path}
    assert fetched == {"config.json", "vocab.txt"}


def test_survives_a_bad_day(server: Server, tmp_path: Path) -> None:
    repo = publish(server, tmp_path)
    large = f"/org/m/resolve/{COMMIT}/model.safetensors"
    server.script = [page, status(429, Retry_After="0"), status(500)]
    hub.snapshot(repo, "main", tmp_path / "s", include=["config.json"], patience=QUICK)
    server.script = [lambda h: h.say(200, server.files[h.path.split("?")[0]]), short(30_000)]
    hub.snapshot(repo, COMMIT, tmp_path / "t", include=["*.safetensors"], patience=QUICK)
    assert (tmp_path / "t/model.safetensors").read_bytes() == server.files[large]
    assert server.ranges[-1] == "bytes=30000-"


@pytest.mark.parametrize(
    ("names", "include", "exclude", "kind", "expect"),
    [
        (["a.bin", "a.safetensors"], [], [], "model", ["a.safetensors"]),
        (["a.bin", "config.json"], [], [], "model", ["a.bin", "config.json"]),
        (["a.bin", "original/a.safetensors"], [], [], "model", ["a.bin"]),
        (["a.bin", "original/x"], [], [], "dataset", ["a.bin", "original/x"]),
        (["a.bin", "a.safetensors"], ["*.bin"], [], "model", ["a.bin"]),
        (["data/a", "data/b"], [], ["*b"], "dataset", ["data/a"]),
    ],
)
def test_which_files_are_wanted(
    names: list[str], include: list[str], exclude: list[str], kind: str, expect: list[str]
) -> None:
    assert hub.select_files(names, include, exclude, kind) == expect


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", "a/../../b", ""])
def test_names_that_leave_the_folder_are_refused(server: Server, tmp_path: Path, name: str) -> None:
    server.document("/api/models/org/m/revision/main", {"sha": COMMIT, "siblings": [{"rfilename": name}]})
    with pytest.raises(Refused, match="leave its folder"):
        hub.snapshot(hub.Repo("org/m", endpoint=server.url), "main", tmp_path / "s", patience=QUICK)


@pytest.mark.parametrize(
    "answer",
    [
        {"sha": COMMIT}, {"siblings": []}, [], "x", None, {"sha": 3, "siblings": []},
        {"sha": COMMIT, "siblings": [3]}, {"sha": COMMIT, "siblings": {"a": 1}},
        {"sha": COMMIT, "siblings": [{"rfilename": 3}]}, {"sha": COMMIT, "siblings": [{}]},
        {"sha": COMMIT, "siblings": [{"rfilename": "a", "size": "9"}]},
        {"sha": COMMIT, "siblings": [{"rfilename": "a", "size": -1}]},
        {"sha": COMMIT, "siblings": [{"rfilename": "a", "lfs": "b"}]},
    ],
    ids=repr,
)  # fmt: skip
def test_an_answer_that_is_no_listing(server: Server, tmp_path: Path, answer: object) -> None:
    server.document("/api/models/org/m/revision/main", answer)
    with pytest.raises(Failed, match="no listing of a repository"):
        hub.snapshot(hub.Repo("org/m", endpoint=server.url), "main", tmp_path / "s", patience=QUICK)


@pytest.mark.parametrize(
    ("names", "complaint"), [(["a", "a/b"], "as a file and as a folder"), (["x" * 300], "too long")]
)
def test_names_that_no_folder_can_hold(
    server: Server, tmp_path: Path, names: list[str], complaint: str
) -> None:
    rows = [{"rfilename": name} for name in names]
    server.document("/api/models/org/m/revision/main", {"sha": COMMIT, "siblings": rows})
    with pytest.raises(Refused, match=complaint):
        hub.snapshot(hub.Repo("org/m", endpoint=server.url), "main", tmp_path / "s", patience=QUICK)
    assert not (tmp_path / "s").exists()


def test_an_endless_listing_and_an_endless_file_end(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = publish(server, tmp_path)
    path = f"/org/m/resolve/{COMMIT}/config.json"
    server.files[path] = b"{" * (8 << 20)
    with pytest.raises(WrongContent):
        hub.snapshot(repo, "main", tmp_path / "s", include=["config.json"], patience=QUICK)
    assert not (tmp_path / "s/config.json").exists()
    monkeypatch.setattr(documents, "LARGEST", 1000)
    server.files["/api/models/org/m/revision/main"] = b" " * 2000
    with pytest.raises(Failed, match="larger than"):
        hub.snapshot(repo, "main", tmp_path / "t", patience=QUICK)


def test_no_file_matches(server: Server, tmp_path: Path) -> None:
    with pytest.raises(Failed, match=r"no file matches \*\.gguf"):
        hub.snapshot(publish(server, tmp_path), "main", tmp_path, include=["*.gguf"], patience=QUICK)


def test_the_token_comes_from_the_hubs_own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HOME"):
            patch.delenv(name, raising=False)
        patch.setenv("HOME", str(tmp_path))
        assert hub.token() == ""
        (tmp_path / ".huggingface").mkdir()
        (tmp_path / ".huggingface/token").write_text("hf_file\n")
        assert hub.token() == "hf_file"
        patch.setenv("HF_TOKEN", "hf_env")
        assert hub.token() == "hf_env"


def command(server: Server, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    (tmp_path / "made").mkdir(exist_ok=True)
    return subprocess.run(
        [
            *(sys.executable, "-m", "hpctrain_job.hub", "org/d", "--kind", "dataset", "--revision", "main"),
            *("--into", str(tmp_path / "made/work"), "--partial", str(tmp_path / "partial/hub-1")),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": "core", "HF_ENDPOINT": server.url, "HOME": str(tmp_path)},
    )


def test_the_command_publishes_a_bare_folder(server: Server, tmp_path: Path) -> None:
    publish(server, tmp_path, "org/d", "dataset")
    done = command(server, tmp_path)
    assert done.returncode == 0, done.stderr
    assert below(tmp_path / "made/work") == set(FILES)
    assert not (tmp_path / "partial/hub-1").exists()


def test_a_gated_repository_says_what_to_do(server: Server, tmp_path: Path) -> None:
    server.script = [status(401)]
    done = command(server, tmp_path)
    assert done.returncode == 77
    assert done.stderr == (
        "error: org/d refused the download (401, no token); "
        "accept the licence on the repository's page, then: hf auth login\n"
    )
