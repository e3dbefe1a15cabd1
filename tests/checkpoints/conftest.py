"""Checkpoints made by hand, and by the real libraries in an environment of their own."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpctrain.cli import app
from hpctrain.hooks import scan
from hpctrain.runfile.reading.toml import loads
from tests.conftest import needs
from tests.patience import PATIENCE

TorchRun = Callable[..., str]
Call = Callable[..., tuple[int, str, str]]
Harm = Callable[[Path], str]
"""Damages a checkpoint and says what the error must match."""

Array = np.ndarray[Any, Any]

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent


@pytest.fixture(scope="session", autouse=True)
def formats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The entry points of the plugins, as an installation would declare them."""
    project: Any = loads((ROOT / "plugins/pyproject.toml").read_text())["project"]
    if set(project["entry-points"]["hpctrain.checkpoints"]) <= set(scan.names("checkpoints")):
        yield
        return
    place = tmp_path_factory.mktemp("site")
    info = place / f"hpctrain_plugins-{project['version']}.dist-info"
    info.mkdir()
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {module}" for name, module in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    sys.path.insert(0, str(place))
    scan.installed.cache_clear()
    yield
    sys.path.remove(str(place))
    scan.installed.cache_clear()


DEEPSPEED = ("zero_make.py", "zero_resume.py", "pipe_make.py", "matrix_zero.py")
"""Scripts that write checkpoints with DeepSpeed, which has an environment of its own: a trainer's
test is about its absence."""


@pytest.fixture(scope="session")
def torch_run() -> TorchRun:
    """Runs a script of `makers/` with the interpreter that has torch, or DeepSpeed or megatron-core too."""

    def run(script: str, *args: object) -> str:
        what = "deepspeed" if script in DEEPSPEED else "torch"
        what = "megatron" if script.startswith("megatron_") else what
        variable = f"HPCTRAIN_{what.upper()}_PYTHON"
        python = os.environ.get(variable, "")
        needs("torch", bool(python), f"{variable} names no interpreter with {what}")
        # DeepSpeed builds its parts with the ninja that lies beside its interpreter.
        prefix = Path(python).parents[1]
        env = {
            **os.environ,
            "PATH": f"{prefix}/bin:{os.environ['PATH']}",
            "PYTHONPATH": str(HERE / "makers"),
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "DS_ACCELERATOR": "cpu",
            "DS_SKIP_CUDA_CHECK": "1",
            "TORCH_EXTENSIONS_DIR": f"{prefix}/extensions",  # compiled once, outside home
        }
        done = subprocess.run(
            [python, str(HERE / "makers" / script), *map(str, args)],
            capture_output=True,
            text=True,
            timeout=400 * PATIENCE,
            env=env,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done.stdout

    return run


@pytest.fixture
def convert(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Call]:
    """`hpctrain convert …` in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    def call(*argv: object) -> tuple[int, str, str]:
        code = app.run(["convert", *map(str, argv)])
        said = capsys.readouterr()
        return code, said.out, said.err

    yield call
    for number, handler in before.items():
        signal.signal(number, handler)


def bf16(values: Array) -> Array:
    """float32 values as the bits of bf16, truncated."""
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


NAMES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16, "I64": np.int64, "U8": np.uint8}


def write_safetensors(path: Path, tensors: dict[str, tuple[str, Array]], **metadata: str) -> None:
    """A file as the format's own description says, independent of the code under test."""
    header: dict[str, object] = {"__metadata__": {"format": "pt", **metadata}}
    data = b""
    for name, (dtype, array) in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": dtype,
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(folder: Path) -> dict[str, tuple[str, Array]]:
    """Every tensor of a folder."""
    out = {}
    for path in sorted(folder.glob("*.safetensors")):
        raw = path.read_bytes()
        (length,) = struct.unpack("<Q", raw[:8])
        header = json.loads(raw[8 : 8 + length])
        header.pop("__metadata__", None)
        for name, entry in header.items():
            low, high = (8 + length + n for n in entry["data_offsets"])
            array = np.frombuffer(raw[low:high], NAMES[entry["dtype"]]).reshape(entry["shape"])
            assert name not in out
            out[name] = (entry["dtype"], array)
    return out


def random_tensors(
    seed: int, dtype: str, shapes: Mapping[str, tuple[int, ...]], sigma: float = 0.02
) -> dict[str, tuple[str, Array]]:
    """Seeded numbers in a floating type, a negative zero among them."""
    random = np.random.default_rng(seed)
    out = {}
    for name, shape in shapes.items():
        values = random.normal(0, sigma, shape).astype(np.float32)
        values.reshape(-1)[0] = -0.0
        stored: dict[str, Array] = {
            "F32": values,
            "F16": values.astype(np.float16),
            "BF16": bf16(values),
        }
        out[name] = (dtype, stored[dtype])
    return out
