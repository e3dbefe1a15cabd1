"""What a program imports at its start, read before it is started, and said all at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hpctrain_job import closure
from tests.house.sources import ROOT

FILES = {
    "train.py": "import os\nfrom trainer.loop import go\n",
    "trainer/__init__.py": "from . import words\n",
    "trainer/words.py": "import one_missing\n",
    "trainer/loop.py": (
        "from .deep import inner\nfrom trainer import words\nimport two_missing.below as two\n"
        "try:\n    import caught_missing\nexcept ImportError:\n    caught_missing = None\n"
        "if two:\n    import sometimes_missing\n"
        "def go():\n    import later_missing\n"
    ),
    "trainer/deep/__init__.py": "",
    "trainer/deep/inner.py": "from ..words import x\nwith open(__file__):\n    from three_missing import y\n",
    "trainer/unused.py": "import four_missing\n",
}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def _ran(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hpctrain_job.closure", *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT / "core")},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_what_certainly_is_imported_and_where(program: Path) -> None:
    assert closure.closure(program, "train.py") == {
        "one_missing": "trainer/words.py:1",
        "two_missing": "trainer/loop.py:3",
        "three_missing": "trainer/deep/inner.py:3",
    }


def test_all_that_is_missing_is_said_at_once(program: Path) -> None:
    done = _ran(program, "train.py", "asked_missing")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"error: {name}, which {place} imports: ModuleNotFoundError: No module named '{name}'"
        for name, place in (
            ("asked_missing", "the run"),
            ("one_missing", "trainer/words.py:1"),
            ("three_missing", "trainer/deep/inner.py:3"),
            ("two_missing", "trainer/loop.py:3"),
        )
    ]


def test_the_program_itself_is_imported_last(program: Path) -> None:
    """A package may be there and lack the name that the program wants of it."""
    for name in ("one", "two", "three"):
        (program / f"{name}_missing").mkdir()
        (program / f"{name}_missing/__init__.py").touch()
    (program / "two_missing/below.py").touch()
    done = _ran(program, "train.py")
    assert done.returncode == 1
    assert done.stderr.startswith("error: train, which hpctrain imports: ImportError: cannot import name 'x'")
    (program / "trainer/words.py").write_text("x = 1\n")
    (program / "three_missing/__init__.py").write_text("y = 2\n")
    (program / "train.py").write_text(
        FILES["train.py"] + "import email\nif __name__ == '__main__':\n    1 / 0\n"
    )
    done = _ran(program, "train.py", "json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "No module named 'sometimes_missing'" in done.stderr  # `two` is true
    (program / "sometimes_missing.py").touch()
    done = _ran(program, "train.py", "json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "train.py imports json\n", "")
