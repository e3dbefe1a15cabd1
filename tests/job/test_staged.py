"""What a job without network would miss is found before the queue."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hpctrain_job import staged
from tests.conftest import ROOT


def safetensors(size: int = 8) -> bytes:
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    return len(header).to_bytes(8, "little") + header + b"\1" * size


INDEX = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
MODEL: dict[str, bytes] = {
    "config.json": b'{"model_type": "llama"}',
    "model.safetensors.index.json": json.dumps(INDEX).encode(),
    "model-1.safetensors": safetensors(),
    "model-2.safetensors": safetensors(16),
    "tokenizer.json": b"{}",
}


def published(root: Path, files: dict[str, bytes]) -> Path:
    """As publish.sh leaves it, made by publish.sh."""
    helper = ROOT / "core/hpctrain/render/publish.sh"
    script = f'. {helper}; hpc_begin asset && cp -r made "$WORK" && hpc_publish asset'
    for name, body in files.items():
        (root / "made" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "made" / name).write_bytes(body)
    subprocess.run(["bash", "-c", script], cwd=root, check=True)
    return root / "asset"


def test_what_is_whole_has_no_fault(tmp_path: Path) -> None:
    assert list(staged.faults("model", published(tmp_path, MODEL))) == []


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("model", {"config.json": None}, "there are weights and no config.json"),
        ("model", {"model-2.safetensors": None}, "names model-2.safetensors, which is not there"),
        ("model", {"model-2.safetensors": safetensors(16)[:-1]}, "its header says"),
        ("model", {"model-1.safetensors": b"<html>busy</html>"}, "is not a complete safetensors file"),
        ("model", {"model-1.safetensors": b""}, "is not a complete safetensors file"),
        ("model", {"tokenizer.json": staged.POINTER + b"v1\noid sha256:0"}, "is a pointer of git-lfs"),
        ("model", {"config.json": b'{"auto_map": {"AutoModel": "modeling.M"}}'}, "names modeling.py"),
        ("model", {"config.json": b'{"auto_map": {"AutoModel": "a/b--modeling.M"}}'}, "its code from a/b"),
        ("model", {"tokenizer_config.json": b'{"auto_map": {"AutoTokenizer": ["x.T", null]}}'}, "names x.py"),
        ("dataset", dict.fromkeys(MODEL) | {"README.md": b"# data"}, "no file of it holds rows"),
        ("dataset", dict.fromkeys(MODEL) | {"a.parquet": b""}, "no file of it holds rows"),
    ],
)
def test_what_a_library_would_look_for(
    tmp_path: Path, kind: str, change: dict[str, bytes | None], said: str
) -> None:
    files = {name: body for name, body in (MODEL | change).items() if body is not None}
    found = list(staged.faults(kind, published(tmp_path, files)))
    assert len(found) == 1
    assert said in found[0]


def test_code_beside_the_model_is_whole(tmp_path: Path) -> None:
    files = MODEL | {"config.json": b'{"auto_map": {"AutoModel": "modeling.M"}}', "modeling.py": b""}
    assert list(staged.faults("model", published(tmp_path, files))) == []


def test_a_tokenizer_alone_is_whole(tmp_path: Path) -> None:
    assert list(staged.faults("model", published(tmp_path, {"tokenizer.json": b"{}"}))) == []


@pytest.mark.parametrize("kind", ["model", "dataset", "file"])
def test_what_was_purged_since_is_named(tmp_path: Path, kind: str) -> None:
    link = published(tmp_path, {"tokenizer.json": b"{}", "rows.jsonl": b"{}\n"})
    (link / "tokenizer.json").unlink()
    (link / "rows.jsonl").write_bytes(b"{}")
    assert list(staged.faults(kind, link)) == [
        "rows.jsonl has 2 bytes, 3 were published",
        "tokenizer.json was published and is gone",
    ]


def test_the_command_names_every_asset_and_how_to_stage_it_anew(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    good, gone = published(tmp_path / "a b", MODEL), tmp_path / "gone"
    argv = [sys.executable, "-m", "hpctrain_job.staged", f"model=model:{good}", f"rows=dataset:{gone}"]
    done = subprocess.run(argv, cwd=ROOT / "core", capture_output=True, text=True, check=False)
    assert done.returncode == 66
    assert done.stdout == "model: whole, nothing in it asks for the network\n"
    assert f"rows: {gone} is not there\n  to stage it again: rm {gone}\n" in done.stderr
    assert subprocess.run(argv[:-1], cwd=ROOT / "core", check=False, capture_output=True).returncode == 0
