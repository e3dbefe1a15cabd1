"""`hpctrain convert` on checkpoints made by hand, through the command that users call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hpctrain.model.plan import Binding, Plan
from hpctrain.model.run import RunSpec
from hpctrain.model.train import Layout, Train
from hpctrain.render.graph import nodes_text
from hpctrain.render.tree import plan_json
from hpctrain_job.resume import write_manifest
from tests.checkpoints.conftest import Call, read_safetensors
from tests.checkpoints.models import GPT_NEOX, LLAMA, make
from tests.trainers.plans import cluster


def weights(folder: Path) -> dict[str, tuple[str, bytes]]:
    return {name: (kind, array.tobytes()) for name, (kind, array) in read_safetensors(folder).items()}


@pytest.mark.parametrize(("config", "target"), [(GPT_NEOX, "neox"), (LLAMA, "neox"), (LLAMA, "nanotron")])
def test_there_and_back_is_the_same_weights(
    convert: Call, tmp_path: Path, config: dict[str, Any], target: str
) -> None:
    model = make(tmp_path / "model", config)
    choices = ("--neox-gqa-layout", "concat") if (config, target) == (LLAMA, "neox") else ()
    code, out, err = convert("model", "--to", target, "--tp", 2, "-o", "there", *choices)
    assert (code, out) == (0, "there\n"), err
    assert convert("there", "-o", "back")[0] == 0
    assert weights(tmp_path / "back") == weights(model)


def test_it_says_what_it_did_and_where_it_is_written_down(convert: Call, tmp_path: Path) -> None:
    make(tmp_path / "model", GPT_NEOX)
    convert("model", "--to", "neox", "--tp", 2, "-o", "neox", "--quiet")
    _, _, err = convert("neox", "-o", "back")
    lines = err.splitlines()
    (head,) = [line for line in lines if line.startswith("neox (tp 2) -> hf   35,936 parameters, bf16, ")]
    assert "peak memory" in head
    assert [line for line in lines if line.startswith("wrote 40 tensors: 40 exact")]
    proof = "every source tensor used once or named; round trip exact; shapes as the configuration says"
    assert f"verified: {proof}" in lines
    assert "back/conversion.json   each decision and checksum" in lines
    assert [line for line in lines if line.startswith("convert: ") and " kB" in line]
    said = json.loads((tmp_path / "back/conversion.json").read_text())
    assert (said["source_format"], said["verified"], said["parameters"]) == ("neox", "roundtrip", 35936)


def test_a_dry_run_is_the_table_and_writes_nothing(convert: Call, tmp_path: Path) -> None:
    make(tmp_path / "model", GPT_NEOX)
    code, out, err = convert("model", "--to", "neox", "--dtype", "fp16", "--dry-run")
    assert code == 0
    (row,) = [line.split() for line in out.splitlines() if "0.word_embeddings.weight" in line]
    assert row[1:7] == ["0.word_embeddings.weight", "fp16", "160", "x", "32", "rounded"]
    assert row[7:] == ["gpt_neox.embed_in.weight"]
    assert "would write 40 tensors: 40 rounded; nothing was written" in err
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_json_is_the_whole_report(convert: Call, tmp_path: Path) -> None:
    make(tmp_path / "model", GPT_NEOX)
    code, out, _ = convert("model", "--to", "neox", "-o", "neox", "--json")
    said = json.loads(out)
    assert (code, said["schema"], said["out"], len(said["mapping"])) == (0, "hpctrain/convert/1", "neox", 40)


def test_the_documents_command_lines(convert: Call, tmp_path: Path) -> None:
    model = make(tmp_path / "model", GPT_NEOX)
    line = ("--hf-model", "model", "--output-dir", "neox", "--tp", 2, "--iteration", 5)
    assert convert(*line, "--no-transformer-engine")[0] == 0
    assert (tmp_path / "neox/latest").read_text().strip() == "global_step5"
    assert convert("--input_dir", "neox", "--output_dir", "back", "--precision", "auto")[0] == 0
    assert weights(tmp_path / "back") == weights(model)
    assert convert("--merge_lora", "--model_dir", "back", "--output_path", "merged")[0] == 0
    assert weights(tmp_path / "merged") == weights(model)


@pytest.mark.parametrize(
    ("argv", "code", "slug", "says"),
    [
        (("./gone", "-o", "x"), 2, "checkpoint-missing", "./gone does not exist"),
        (("gone", "-o", "x"), 2, "no-run", "no folder and no run 'gone'"),
        (("model",), 2, "usage", "a new folder is needed"),
        (("model", "-o", "model"), 2, "output-exists", "model exists already"),
        (("model", "-o", "x", "--to", "onnx"), 2, "no-plugin", "onnx"),
        (("model", "-o", "x", "--to", "peft"), 2, "checkpoint-format", "peft can be read but not written"),
        (("model", "-o", "x", "--dtype", "fp8"), 2, "usage", "fp8"),
        (("model", "-o", "x", "--tp", "0"), 2, "usage", "--tp"),
        (("org/name", "-o", "x", "--revision", "v1"), 2, "checkpoint-missing", "hub's cache"),
        (("torn", "-o", "x"), 7, "checkpoint-damaged", "torn/model.safetensors"),
        (
            ("model", "-o", "model/config.json/x"),
            1,
            "file",
            "model/config.json: File exists; nothing was kept",
        ),
        (("model", "-o", "/proc/none/x"), 1, "file", "/proc/none: No such file or directory"),
    ],
)
def test_a_mistake_is_one_error_and_nothing_is_written(
    convert: Call, tmp_path: Path, argv: tuple[str, ...], code: int, slug: str, says: str
) -> None:
    make(tmp_path / "model", GPT_NEOX)
    file = make(tmp_path / "torn", GPT_NEOX) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    ended, out, err = convert(*argv)
    assert (ended, out) == (code, "")
    assert err.count("error[") == 1
    assert f"error[{slug}]" in err
    assert says in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "torn"]


def test_without_numpy_it_names_the_extra(
    convert: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n.startswith("hpctrain_plugins.checkpoints.")]:
        if name.rpartition(".")[2].partition("_")[0] not in ("command", "options", "newest"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "hpctrain_plugins.checkpoints.cli.output", raising=False)
    monkeypatch.setitem(sys.modules, "numpy", None)
    make(tmp_path / "model", GPT_NEOX)
    code, _, err = convert("model", "-o", "x")
    assert (code, "error[no-package]" in err) == (2, True)
    assert "pip install 'hpctrain[convert]'" in err


def a_run(root: Path) -> Path:
    """A run directory as `submit` leaves it, and where its checkpoints go."""
    train = Train(argv=("t",), checkpoints=Layout(format="hf", complete="trainer_state.json"))
    plan = Plan(
        run=RunSpec(name="r", cluster="toy"),
        cluster=cluster(),
        pins=(),
        steps=(),
        train=train,
        digest="a" * 64,
    )
    folder = root / "runs/r/1-aaaaaaaa"
    folder.mkdir(parents=True)
    roots = {"checkpoints": str(root / "ck"), "runs": str(root / "runs")}
    (folder / "plan.json").write_text(plan_json(plan))
    (folder / "graph.json").write_text(nodes_text(plan, (), Binding(roots=roots, user="ada")))
    return root / "ck/r/1-aaaaaaaa"


def saved(checkpoints: Path, step: int, *, whole: bool = True) -> Path:
    checkpoints.mkdir(parents=True, exist_ok=True)
    folder = make(checkpoints / f"checkpoint-{step}", GPT_NEOX)
    if whole:
        (folder / "trainer_state.json").write_text("{}")
        write_manifest(folder)
    return folder


def test_a_run_is_its_newest_checkpoint_that_is_whole(convert: Call, tmp_path: Path) -> None:
    checkpoints = a_run(tmp_path)
    saved(checkpoints, 5)
    good = saved(checkpoints, 10)
    (saved(checkpoints, 15) / "config.json").write_text("{}")
    saved(checkpoints, 20, whole=False)
    code, out, err = convert("runs/r/1-aaaaaaaa")
    assert (code, out.strip()) == (0, str(checkpoints / "hf/checkpoint-10")), err
    assert "checkpoint-15 is skipped" in err
    assert weights(checkpoints / "hf/checkpoint-10") == weights(good)


def test_a_run_without_a_checkpoint_says_so(convert: Call, tmp_path: Path) -> None:
    a_run(tmp_path)
    code, _, err = convert("runs/r/1-aaaaaaaa")
    assert (code, "error[checkpoint-missing]" in err) == (2, True)


def test_a_model_of_the_hubs_cache(convert: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub-home"))
    folder = tmp_path / "hub-home/hub/models--org--name"
    (folder / "snapshots").mkdir(parents=True)
    make(folder / "snapshots/abc", GPT_NEOX)
    (folder / "refs").mkdir()
    (folder / "refs/v1").write_text("abc")
    assert convert("--hf-model", "org/name", "--revision", "v1", "--output-dir", "neox")[0] == 0
    assert (tmp_path / "neox/latest").is_file()
    code, out, err = convert("--hf-model", "org/name", "--revision", "v1", "--on", "local")
    assert (code, Path(out.strip()).name, "checkpoints" in out) == (0, "name", True), err
    assert (Path(out.strip()) / "latest").is_file()
    (folder / "refs/v1").write_bytes(b"abc" + b" " * (1 << 20))
    code, _, err = convert("--hf-model", "org/name", "--revision", "v1", "--output-dir", "other")
    assert code == 7
    assert f"{folder}/refs/v1 cannot be read: it is larger than 64 KiB" in err


LARGE_PARENT = """
import subprocess, sys
room = bytearray(400_000_000)
code = "from hpctrain_plugins.checkpoints.cli import output; print(output._peak_memory())"
print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
"""


def test_the_memory_that_is_told_is_not_that_of_who_started_it() -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    out = subprocess.run([sys.executable, "-c", LARGE_PARENT], capture_output=True, text=True, env=env)
    assert 10_000_000 < int(out.stdout) < 200_000_000, out.stderr
