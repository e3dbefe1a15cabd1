"""One conversion by several processes: the same bytes as by one, or nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hpctrain_plugins.checkpoints.convert import convert
from hpctrain_plugins.checkpoints.crew import Crew
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.models import GPT_NEOX, LLAMA, make
from tests.checkpoints.test_disks import texts
from tests.patience import PATIENCE, wait_for

MEMBER = """
import sys
from hpctrain_plugins.checkpoints import crew
crew._SILENT = float(sys.argv.pop(1))
from hpctrain.cli.app import run
sys.exit(run(sys.argv[1:]))
"""


def started(folder: Path, rank: int, count: int, *line: str, silent: float = 60) -> subprocess.Popen[str]:
    """One process as the job's step starts it, on a scheduler that gives these variables."""
    numbers = {"HPC_RANK": rank, "HPC_WORLD": count, "HPC_JOB": 7, "HPC_ATTEMPT": 0}
    environ = {**os.environ, **{name: str(value) for name, value in numbers.items()}}
    words = [sys.executable, "-c", MEMBER, str(silent), "convert", *line, "--shared", "--quiet"]
    return subprocess.Popen(words, cwd=folder, env=environ, text=True, stderr=subprocess.PIPE)


def ended(processes: Sequence[subprocess.Popen[str]]) -> list[tuple[int, str]]:
    texts = [process.communicate(timeout=60 * PATIENCE)[1] for process in processes]
    return [(p.returncode, text) for p, text in zip(processes, texts, strict=True)]


@pytest.mark.parametrize(
    ("config", "line"),
    [
        (GPT_NEOX, ("--to", "neox", "--tp", "2")),
        (LLAMA, ("--to", "hf", "--shard-bytes", "9000", "--dtype", "fp32")),
    ],
)
def test_three_write_what_one_would(tmp_path: Path, config: dict[str, object], line: tuple[str, ...]) -> None:
    make(tmp_path / "model", config)
    crew = [started(tmp_path, rank, 3, "model", *line, "-o", "shared") for rank in (2, 0, 1)]
    assert ended(crew) == [(0, "")] * 3
    single = started(tmp_path, 0, 1, "model", *line, "-o", "alone")
    assert ended([single]) == [(0, "")]
    assert texts(tmp_path / "shared") == texts(tmp_path / "alone")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["alone", "model", "shared"]


def test_damage_that_one_finds_ends_all(tmp_path: Path) -> None:
    """The second one's share of the source has a checksum that does not hold."""
    make(tmp_path / "model", GPT_NEOX)
    convert(tmp_path / "model", "neox", tmp_path / "neox", ConvertOptions(tp=2))
    file = sorted((tmp_path / "neox").rglob("layer_*"))[-1]
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    line = ("neox", "--to", "hf", "--shard-bytes", "9000", "-o", "out")
    crew = [started(tmp_path, rank, 2, *line) for rank in (0, 1)]
    answers = ended(crew)
    assert all(code != 0 for code, _ in answers)
    assert any("does not match" in text for _, text in answers)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "neox"]


@pytest.mark.parametrize("killed", [0, 1])
def test_a_process_that_dies_leaves_nothing_under_the_name(tmp_path: Path, killed: int) -> None:
    """It dies when its share is written; the third one, which all wait for, comes later."""
    make(tmp_path / "model", GPT_NEOX)
    line = ("model", "--to", "neox", "-o", "out")
    crew = [started(tmp_path, rank, 3, *line, silent=3) for rank in (0, 1)]
    wait_for("its share", lambda: list(tmp_path.glob(f".out.*/.ranks/copied.{killed}")), 30)
    crew[killed].kill()
    crew[killed].communicate()
    answers = ended([crew[1 - killed], started(tmp_path, 2, 3, *line, silent=3)])
    assert all(code in (1, 2) for code, _ in answers), answers
    assert any("gave no sign of life" in text for _, text in answers), answers
    assert not (tmp_path / "out").exists()
    again = subprocess.run(
        [sys.executable, "-m", "hpctrain", "convert", *line], cwd=tmp_path, capture_output=True, text=True
    )
    assert again.returncode == 0, again.stderr
    assert ("which a killed conversion left" in again.stderr) == (killed == 0)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "out"]


def test_the_largest_go_first_to_who_has_least() -> None:
    sizes = [5, 1, 9, 5, 2, 2]
    shares = [Crew(rank, 3).share(sizes) for rank in range(3)]
    assert sorted(number for share in shares for number in share) == list(range(6))
    assert max(sum(sizes[n] for n in share) for share in shares) == 9


def test_more_nodes_than_files_are_refused_before_they_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from hpctrain.cli import app

    monkeypatch.chdir(tmp_path)
    make(Path("model"), LLAMA)
    assert app.run(["convert", "model", "-o", "out", "--job", "--on", "local", "--nodes", "2"]) == 2
    errors = capsys.readouterr().err
    assert "hf is written as 1 file here, which 2 nodes cannot share" in errors
    assert "--shard-bytes" in errors
    assert app.run(["convert", "model", "-o", "out", "--nodes", "2"]) == 2
    assert "--nodes is of a job" in capsys.readouterr().err
