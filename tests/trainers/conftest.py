"""A Python with torch, the demo's data, and trainers started as the job starts them."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from hpctrain.runfile.reading.toml import loads
from hpctrain_job import metrics
from tests.conftest import needs
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "plugins/hpctrain_plugins/local/demo"
TABLE: dict[str, Any] = loads((DEMO / "run.toml").read_text())["train"]["trl"]
SHAPE: dict[str, Any] = TABLE["config"]
LIMIT = 200 * PATIENCE
"""Below pytest's own limit of 900 s at the highest patience: what a rank printed is shown."""
FORKED = str(Path(__file__).with_name("forked.py"))


@attrs.frozen
class Trained:
    """A run directory after the trainer ended."""

    folder: Path
    code: int
    log: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        return metrics.read(self.folder / "metrics.jsonl")

    @property
    def losses(self) -> list[float]:
        return [row["loss"] for row in self.rows if "loss" in row]

    @property
    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "run.json").read_text())
        return found


@pytest.fixture(scope="session")
def torch_python() -> str:
    """The interpreter with torch, or a skip that says which capability is missing."""
    named = os.environ.get("HPCTRAIN_TORCH_PYTHON", "")
    needs("torch", bool(named), "HPCTRAIN_TORCH_PYTHON names no interpreter with torch")
    return named


@pytest.fixture(scope="session")
def earlier_python() -> str:
    """The interpreter with the libraries' generation before: transformers 4 and TRL 0.23."""
    named = os.environ.get("HPCTRAIN_EARLIER_PYTHON", "")
    needs("torch", bool(named), "HPCTRAIN_EARLIER_PYTHON names no interpreter with transformers 4")
    return named


@pytest.fixture(scope="session")
def deepspeed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a rank needs in its environment to compile and run DeepSpeed, which `python=` starts."""
    named = os.environ.get("HPCTRAIN_DEEPSPEED_PYTHON", "")
    needs("torch", bool(named), "HPCTRAIN_DEEPSPEED_PYTHON names no interpreter with deepspeed")
    needs("torch", shutil.which("c++") is not None, "DeepSpeed compiles at its first start; no c++ here")
    return {
        "TORCH_EXTENSIONS_DIR": str(tmp_path_factory.mktemp("extensions")),
        "PATH": f"{Path(named).parent}:{os.environ['PATH']}",
        "HPCTRAIN_DEEPSPEED_PYTHON": named,
    }


@pytest.fixture(scope="session")
def demo(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's data, made by its own maker."""
    folder = tmp_path_factory.mktemp("demo") / "asset"
    command = [torch_python, str(DEMO / "make_data.py")]
    subprocess.run(command, env={**os.environ, "WORK": str(folder)}, check=True, timeout=LIMIT)
    return folder


@pytest.fixture(scope="session")
def settings(demo: Path) -> dict[str, Any]:
    """The demo's settings, as the job reads them."""
    assets = ("tokenizer", "train_dataset", "eval_dataset")
    return {**TABLE, "model": "", **{key: TABLE[key].replace("demo", str(demo), 1) for key in assets}}


def surroundings(folder: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a rank: what the plan sets, and nothing of the caller's but PATH and HOME."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "HPC_RUN": str(folder),
        "HPC_CHECKPOINTS": str(folder / "checkpoints"),
        "HF_HOME": str(folder / "cache"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": f"{ROOT / 'core'}:{ROOT / 'plugins'}",
        **(extra or {}),
    }


def free_port() -> str:
    """A port that nobody listens on, below those that Linux gives to clients: none takes it meanwhile."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return str(port)


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """The socket of an interpreter that has imported the trainer's libraries and starts ranks (forked.py)."""
    servers: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}

    def at(python: str) -> Path:
        if python not in servers:
            folder = tmp_path_factory.mktemp("forks")
            path = folder / "socket"
            command = [python, FORKED, "serve", str(path)]
            server = subprocess.Popen(command, env=surroundings(folder), start_new_session=True)
            servers[python] = server, path
        server, path = servers[python]
        end = time.monotonic() + LIMIT
        while not path.exists():
            assert server.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        return path

    yield at
    for server, _ in servers.values():
        with contextlib.suppress(ProcessLookupError):  # one that has ended by itself is no test's failure
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


@pytest.fixture(scope="session")
def start(torch_python: str, forks: Callable[[str], Path]) -> Callable[..., subprocess.Popen[str]]:
    """Start one rank in a folder; `arguments` are flags besides the settings' file.

    `fresh`: as the job starts it, instead of as a copy of a process that has imported the libraries.
    """

    def started(
        folder: Path,
        values: Mapping[str, Any],
        *arguments: str,
        env: Mapping[str, str] | None = None,
        python: str = "",
        fresh: bool = False,
    ) -> subprocess.Popen[str]:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "trl.json").write_text(json.dumps(values))
        python = python or torch_python
        how = ["-m", "hpctrain_trl"] if fresh else ["-S", FORKED, str(forks(python))]
        return subprocess.Popen(
            [python, *how, "--config", "trl.json", *arguments],
            cwd=folder,
            env=surroundings(folder, env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return started


@pytest.fixture(scope="session")
def train(start: Callable[..., subprocess.Popen[str]]) -> Callable[..., Trained]:
    """Run one rank to its end."""

    def trained(folder: Path, values: Mapping[str, Any], *arguments: str, **more: Any) -> Trained:
        process = start(folder, values, *arguments, **more)
        log, _ = process.communicate(timeout=LIMIT)
        sys.stdout.write(log)
        return Trained(folder, process.returncode, log)

    return trained


@pytest.fixture(scope="session")
def start_two(start: Callable[..., subprocess.Popen[str]]) -> Callable[..., list[subprocess.Popen[str]]]:
    """Start two ranks as a scheduler does, rank 0 first."""

    def started(
        folder: Path, values: Mapping[str, Any], env: Mapping[str, str] | None = None, python: str = ""
    ) -> list[subprocess.Popen[str]]:
        world = {
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": free_port(),
            **(env or {}),
        }
        return [
            start(folder, values, env={**world, "RANK": rank, "LOCAL_RANK": rank}, python=python)
            for rank in ("0", "1")
        ]

    return started


def output_of(process: subprocess.Popen[str]) -> str:
    """What it printed until its end, or until it was too late."""
    try:
        return process.communicate(timeout=LIMIT / 2)[0]
    except subprocess.TimeoutExpired as error:
        return f"{error.output or b''!r}, and then nothing\n"


def ended(folder: Path, ranks: list[subprocess.Popen[str]]) -> Trained:
    """All ranks at their end; the report is rank 0's."""
    logs = [output_of(process) for process in ranks]
    sys.stdout.write("".join(logs))
    assert None not in [process.poll() for process in ranks], "a rank did not end"
    return Trained(folder, max(process.returncode for process in ranks), logs[0])


@pytest.fixture(scope="session")
def train_two(start_two: Callable[..., list[subprocess.Popen[str]]]) -> Callable[..., Trained]:
    """Run two ranks to their end."""

    def trained(folder: Path, values: Mapping[str, Any], **more: Any) -> Trained:
        return ended(folder, start_two(folder, values, **more))

    return trained


def wait_for_step(folder: Path, step: int, *ranks: subprocess.Popen[str]) -> None:
    """Until the run has written the row of this step."""
    end = time.monotonic() + LIMIT
    while not any(row["step"] >= step for row in metrics.read(folder / "metrics.jsonl")):
        assert all(process.poll() is None for process in ranks)
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture(scope="session")
def learnt(
    train: Callable[..., Trained], settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Trained:
    """The demo, trained once for all tests that need a model."""
    return train(tmp_path_factory.mktemp("learnt"), settings, fresh=True)
