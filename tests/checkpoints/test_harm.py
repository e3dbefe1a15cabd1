"""Whatever happens to a checkpoint or to a conversion: one clear error, and no half output."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from bench import convert_make
from hpctrain.errors import HpctrainError
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import read_safetensors, write_safetensors
from tests.checkpoints.models import GPT_NEOX, LLAMA, make
from tests.patience import PATIENCE

SMALL = {**GPT_NEOX, "num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 16}
SMALL_LLAMA = {**LLAMA, "num_hidden_layers": 1, "hidden_size": 16, "intermediate_size": 24}


def checkpoint(folder: Path, kind: str) -> Path:
    config = SMALL_LLAMA if kind == "nanotron" else SMALL
    source = make(folder / "hf", {**config, "vocab_size": 32})
    if kind == "hf":
        return source
    convert(source, kind, folder / kind, ConvertOptions(tp=2, fsync=False))
    return folder / kind


def mutilate(folder: Path, dice: random.Random) -> Path:
    """One harm to one file: gone, empty, cut, or some bytes changed."""
    files = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.name != "conversion.json"]
    victim = dice.choice(files)
    raw = bytearray(victim.read_bytes())
    kind = dice.choice(("gone", "empty", "cut", "bytes", "bytes", "bytes"))
    if kind == "gone":
        victim.unlink()
        return victim
    if kind == "bytes" and raw:
        for _ in range(dice.choice((1, 4, 40))):
            at = dice.randrange(min(len(raw), dice.choice((64, 1 << 20))))
            raw[at] = dice.randrange(256)
    victim.write_bytes(raw[: {"empty": 0, "cut": dice.randrange(len(raw) or 1)}.get(kind, len(raw))])
    return victim


def weights(folder: Path) -> dict[str, bytes]:
    return {name: array.tobytes() for name, (_, array) in read_safetensors(folder).items()}


def failure(source: Path, out: Path, options: ConvertOptions) -> HpctrainError | None:
    try:
        convert(source, "hf", out, options)
    except HpctrainError as error:
        return error
    return None


@pytest.mark.parametrize("kind", ["hf", "neox", "nanotron"])
def test_no_harm_gives_another_error_or_a_half_output(tmp_path: Path, kind: str) -> None:
    (tmp_path / "made").mkdir()
    whole = checkpoint(tmp_path / "made", kind)
    convert(whole, "hf", tmp_path / "made/back", ConvertOptions(source_format=kind))
    want = weights(tmp_path / "made/back")
    refused = 0
    for seed in range(80):
        shutil.copytree(whole, tmp_path / "copy")
        victim = mutilate(tmp_path / "copy", random.Random(seed))
        options = ConvertOptions(source_format=kind, fsync=False)
        error = failure(tmp_path / "copy", tmp_path / "out", options)
        if error is not None:
            refused += 1
            assert error.exit_code in (2, 7), seed
            assert error.problems[0].message
        else:  # a torch file has checksums: what was accepted is whole
            assert victim.suffix != ".pt" or weights(tmp_path / "out") == want, seed
        found = {p.name for p in tmp_path.iterdir()} - {"made", "copy"}
        assert found <= {"out"}, seed
        for path in (tmp_path / "copy", tmp_path / "out"):
            shutil.rmtree(path, ignore_errors=True)
    assert refused > 20


def evil(file: Path) -> None:
    """Beside what a torch file says already, the name of a function, deep below a key that nobody reads."""
    named = b"X\x01\x00\x00\x00k]]}X\x01\x00\x00\x00kcposix\nsystem\n(X\x04\x00\x00\x00truetRsaas"
    with zipfile.ZipFile(file) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data[:-1] + named + b"." if name.endswith("/data.pkl") else data)


def test_code_in_any_file_of_an_optimizer_is_named_and_not_run(tmp_path: Path) -> None:
    source = make(tmp_path / "hf", {**SMALL_LLAMA, "vocab_size": 32}, "F32")
    convert_make.zero(tmp_path / "zero", source, 2, stage=2)
    files = sorted((tmp_path / "zero").rglob("*.pt"))
    assert len(files) == 3
    for file in files:
        before = file.read_bytes()
        evil(file)
        with pytest.raises(HpctrainError, match=rf"{file.name} names posix.system") as caught:
            convert(tmp_path / "zero", "hf", tmp_path / "out", ConvertOptions())
        assert caught.value.exit_code == 7
        assert not (tmp_path / "out").exists()
        file.write_bytes(before)
    convert(tmp_path / "zero", "hf", tmp_path / "out", ConvertOptions(dtype="bf16"))


@pytest.mark.parametrize("target", ["hf", "neox", "nanotron"])
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"num_hidden_layers": 2}, "layer 1 is missing from .*, whose configuration says 2 layers"),
        ({"num_hidden_layers": 0}, "num_hidden_layers of .* is 0, not a whole number from 1 to"),
        ({"hidden_size": 24}, r"embed_tokens.weight has shape \[32, 16\] where config.json says \[32, 24\]"),
        ({"vocab_size": 31}, r"embed_tokens.weight has shape \[32, 16\] where config.json says \[31, 16\]"),
    ],
)
def test_a_configuration_of_another_model_is_refused(
    tmp_path: Path, target: str, change: dict[str, int], says: str
) -> None:
    source = make(tmp_path / "hf", {**SMALL_LLAMA, "vocab_size": 32})
    (source / "config.json").write_text(json.dumps({**SMALL_LLAMA, "vocab_size": 32, **change}))
    with pytest.raises(HpctrainError, match=says) as caught:
        convert(source, target, tmp_path / "out", ConvertOptions())
    assert (caught.value.exit_code, [p.name for p in tmp_path.iterdir()]) == (7, ["hf"])


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        ("lost", "mlp.up_proj.weight of layer 2 is missing from"),
        ("cut", r"mlp.up_proj.weight of layer 2 has shape \[47, 32\], in other layers \[48, 32\]"),
    ],
)
def test_a_layer_unlike_its_fellows_is_named(tmp_path: Path, harm: str, says: str) -> None:
    source = make(tmp_path / "hf", LLAMA)
    tensors = read_safetensors(source)
    name = "model.layers.2.mlp.up_proj.weight"
    dtype, array = tensors.pop(name)
    if harm == "cut":
        tensors[name] = (dtype, array[:47])
    write_safetensors(source / "model.safetensors", tensors)
    with pytest.raises(HpctrainError, match=says) as caught:
        convert(source, "hf", tmp_path / "out", ConvertOptions())
    assert (caught.value.exit_code, [p.name for p in tmp_path.iterdir()]) == (7, ["hf"])


@pytest.mark.parametrize("layout", ["pipelined", "sequential"])
def test_code_in_any_file_is_named_and_not_run(tmp_path: Path, layout: str) -> None:
    source = make(tmp_path / "hf", {**SMALL, "vocab_size": 32})
    convert(source, "neox", tmp_path / "neox", ConvertOptions(tp=2, layout=layout, fsync=False))
    files = sorted((tmp_path / "neox").rglob("*.pt"))
    kinds = {"mp": 2} if layout == "sequential" else {"mp": 2, "layer": 8}
    assert Counter(file.name.partition("_")[0] for file in files) == kinds
    for file in files:
        before = file.read_bytes()
        evil(file)
        with pytest.raises(HpctrainError, match=rf"{file.name} names posix.system") as caught:
            convert(tmp_path / "neox", "hf", tmp_path / "out", ConvertOptions())
        assert caught.value.exit_code == 7
        assert not (tmp_path / "out").exists()
        file.write_bytes(before)
    convert(tmp_path / "neox", "hf", tmp_path / "out", ConvertOptions())


SCRIPT = """
import sys
from pathlib import Path
from hpctrain.errors import HpctrainError
from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.options import ConvertOptions
try:
    convert(Path(sys.argv[1]), "neox", Path(sys.argv[2]), ConvertOptions(tp=2, source_format="hf"))
except HpctrainError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def start(*words: object, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    path = os.pathsep.join(filter(None, sys.path))
    return subprocess.Popen(
        [*before, sys.executable, "-c", SCRIPT, *map(str, words)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture
def larger(tmp_path: Path) -> Path:
    config = {**GPT_NEOX, "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 4}
    return make(tmp_path / "source", config, "F32")


def test_a_kill_at_any_time_leaves_all_or_nothing(larger: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    whole = start(larger, tmp_path / "whole")
    began = time.monotonic()
    assert whole.communicate(timeout=60)[0] == ""
    took = time.monotonic() - began
    names = sorted(p.name for p in (tmp_path / "whole").rglob("*"))
    for share in (0.3, 0.5, 0.7, 0.8, 0.9, 1.0):
        process = start(larger, out)
        time.sleep(took * share)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        if out.exists():
            assert sorted(p.name for p in out.rglob("*")) == names
            shutil.rmtree(out)
    left = {p.name for p in tmp_path.iterdir()} - {"source", "whole"}
    assert all(name.startswith(".out.") and name.endswith(".partial") for name in left)


def test_a_full_disk_is_said_and_nothing_stays(larger: Path, tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    mount = f"mount -t tmpfs -o size=20m tmpfs {tmp_path}/small"
    inside = f'{mount} && "$@"; c=$?; ls -A {tmp_path}/small; exit $c'
    before = ("unshare", "-rm", "sh", "-c", inside, "sh")
    try:
        able = subprocess.run(["unshare", "-rm", "true"], capture_output=True, timeout=10 * PATIENCE)
    except FileNotFoundError:
        pytest.skip("this machine has no unshare")
    if able.returncode:
        pytest.skip("this machine allows no mounts in a namespace")
    process = start(larger, tmp_path / "small/out", before=before)
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 1
    assert said == f"no room is left below {tmp_path}/small; nothing was kept\n"


def test_nothing_imports_torch(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    write_safetensors(source / "model.safetensors", {"w": ("F32", np.ones((2, 2), np.float32))})
    script = "import sys; sys.modules['torch'] = None\n" + SCRIPT.replace('"neox"', '"hf"').replace(
        "tp=2, ", ""
    )
    script += "\nassert not [m for m in sys.modules if m.startswith(('torch.', 'transformers'))]"
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", script, source, tmp_path / "out"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out/model.safetensors").exists()
