"""kill -9 at random moments, again with other workers: the same bytes, and nothing half there before."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hpctrain_tokens import pieces
from tests.data import reference
from tests.patience import PATIENCE

SOAK = os.environ.get("HPCTRAIN_SOAK")
KILLS = int(SOAK or 4)
SEED = 20
LIMIT = 300
LIMITED = """
import resource, sys
from hpctrain_tokens.__main__ import main
resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))
sys.exit(main(sys.argv[1:]))
"""


def start(path: Path, out: Path, tokenizer: Path, workers: int) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "hpctrain_tokens", "prepare", str(path), "--output-prefix", str(out)]
    argv += ["--tokenizer", str(tokenizer), "--workers", str(workers)]
    with Path(f"{out}.log").open("wb") as log:
        return subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pieces of text that differ."""
    path = tmp_path_factory.mktemp("kills") / "a.jsonl"
    rng = random.Random(SEED)
    with path.open("w") as file:
        while file.tell() < 2.5 * pieces.SIZE:
            text = " ".join(rng.choices(["the", "quick", "brown", "fox", "jumps"], k=400))
            file.write(json.dumps({"text": f"{rng.random()} {text}"}) + "\n")
    return path


@pytest.mark.slow
@pytest.mark.timeout(3600 if SOAK else 900)
def test_kills(tmp_path: Path, data: Path, tokenizer: Path) -> None:
    began = time.monotonic()
    whole = start(data, tmp_path / "whole", tokenizer, 2)
    assert whole.wait(LIMIT) == 0, Path(tmp_path / "whole.log").read_text()
    took = time.monotonic() - began
    rng = random.Random(SEED)
    kills, results, resumed = 0, 0, 0
    while kills < KILLS:
        out = tmp_path / f"x{results}"
        while True:
            resumed += any(tmp_path.glob(f".x{results}.work/*/*.json"))
            running = start(data, out, tokenizer, rng.choice([1, 2, 3]))
            try:
                code = running.wait(rng.uniform(0, took) if kills < KILLS else LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                running.wait(LIMIT)
                kills += 1
                assert_whole_or_absent(out, tmp_path / "whole")
                continue
            assert code == 0, Path(f"{out}.log").read_text()
            break
        assert reference.same(Path(f"{out}_text_document"), tmp_path / "whole_text_document")
        left = [p.name for dots in (".", "..") for p in tmp_path.glob(f"{dots}x{results}*")]
        assert left == [], "no work folder stays, and nothing that a killed one wrote"
        results += 1
    assert resumed, "no start found earlier work: the kills came too early to prove anything"


def assert_whole_or_absent(out: Path, whole: Path) -> None:
    """What a trainer looks for is there only when everything is."""
    if Path(f"{out}_text_document.idx").exists():
        assert reference.same(Path(f"{out}_text_document"), Path(f"{whole}_text_document"))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes in /proc")
def test_workers_end_with_their_parent(tmp_path: Path, data: Path, tokenizer: Path) -> None:
    running = start(data, tmp_path / "x", tokenizer, 2)
    workers: list[int] = []
    until = time.monotonic() + 60 * PATIENCE
    while len(workers) < 2 and time.monotonic() < until:
        workers = children(running.pid)
        time.sleep(0.02)
    assert len(workers) >= 2
    os.kill(running.pid, signal.SIGKILL)
    running.wait(LIMIT)
    while any(alive(pid) for pid in workers) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [pid for pid in workers if alive(pid)]


def children(parent: int) -> list[int]:
    found = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(word) for word in found.read_text().split()] if found.exists() else []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_full_disk(tmp_path: Path, tokenizer: Path) -> None:
    """A limit on the size of files is a disk that is full; afterwards the same command goes on."""
    path = reference.jsonl(tmp_path / "a.jsonl", [{"text": f"the quick brown fox {i}"} for i in range(2000)])
    words = ["prepare", str(path), "--output-prefix", str(tmp_path / "x"), "--tokenizer", str(tokenizer)]
    limited = [sys.executable, "-c", LIMITED, *words]
    failed = subprocess.run(limited, capture_output=True, text=True, timeout=LIMIT)
    assert failed.returncode == 1
    assert failed.stderr.startswith(f"error[data-disk]: {tmp_path}/")
    assert "help: free some space" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl"]
    argv = [sys.executable, "-m", "hpctrain_tokens", *words]
    assert subprocess.run(argv, capture_output=True, timeout=LIMIT).returncode == 0
