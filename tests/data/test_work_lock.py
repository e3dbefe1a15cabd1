"""Several commands at one result, and work that was interrupted."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hpctrain_tokens import prepare, work_lock
from hpctrain_tokens.faults import DataError
from hpctrain_tokens.options import Options
from tests.data import reference
from tests.data.test_prepare import interrupted, made, rows, texts
from tests.patience import PATIENCE

HOLDS = """
import sys, pathlib
from hpctrain_tokens.work_lock import lock
folder = pathlib.Path(sys.argv[1])
with lock(folder, folder):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_one_is_told_so(tmp_path: Path, tokenizer: Path) -> None:
    path = rows(tmp_path / "a.jsonl", texts(50))
    argv = [sys.executable, "-c", HOLDS, str(tmp_path / ".x.work")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(DataError, match="another command is making x") as told:
            made(path, tmp_path / "x", tokenizer)
        assert told.value.faults[0].code == "data-busy"
        holder.kill()
        holder.wait()
    assert made(path, tmp_path / "x", tokenizer)["documents"], "the lock went with its holder"


def test_many_at_once_make_it_whole(tmp_path: Path, tokenizer: Path) -> None:
    """Found by a user: the second one cleared up what the first one was about to publish."""
    path = rows(tmp_path / "a.jsonl", texts(3000))
    made(path, tmp_path / "whole", tokenizer)
    argv = [sys.executable, "-m", "hpctrain_tokens", "prepare", str(path), "--tokenizer", str(tokenizer)]
    for number in range(3):
        out = tmp_path / f"x{number}"
        several = [
            subprocess.Popen(
                [*argv, "--output-prefix", str(out)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(5)
        ]
        ends = [(one.communicate(timeout=120 * PATIENCE)[1], one.returncode) for one in several]
        assert {code for _, code in ends} <= {0, 78}
        assert any(code == 0 for _, code in ends)
        assert all("error[data-busy]" in said for said, code in ends if code)
        assert reference.same(Path(f"{out}_text_document"), tmp_path / "whole_text_document")
        assert list(tmp_path.glob(f".x{number}*")) == []


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr("fcntl.lockf", none)
    with work_lock.lock(tmp_path / "w", tmp_path / "x"), work_lock.lock(tmp_path / "w", tmp_path / "x"):
        assert (tmp_path / "w").is_dir()


@pytest.mark.parametrize("workers", [1, 2])
def test_what_was_done_before_an_interrupt_stays(tmp_path: Path, tokenizer: Path, workers: int) -> None:
    """One piece, too; what is told then are the tokens of now."""
    path = rows(tmp_path / "a.jsonl", texts(100))
    interrupted(path, tmp_path / "x", tokenizer, workers=workers)
    (shard,) = tmp_path.glob(".x.work/*/*.tokens.bin")
    before, told = shard.stat().st_ino, []
    interrupted(path, tmp_path / "x", tokenizer, workers=workers)
    assert shard.stat().st_ino == before
    asked = prepare.Request((str(path),), str(tmp_path / "x"), Options(str(tokenizer)))
    result = prepare.prepare(asked, lambda *said: told.append(said))
    size = path.stat().st_size
    assert told == [(0, size, 0), (size, size, 0)]
    assert result["tokens"] > 0


def test_the_folder_for_work_may_hold_more(tmp_path: Path, tokenizer: Path) -> None:
    path = rows(tmp_path / "a.jsonl", texts(10))
    mine = tmp_path / "scratch" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("precious")
    asked = prepare.Request((str(path),), str(tmp_path / "x"), Options(str(tokenizer)), work=str(mine.parent))
    prepare.prepare(asked)
    assert [p.name for p in mine.parent.iterdir()] == ["mine.txt"]
    with pytest.raises(DataError):
        prepare.prepare(replace(asked, output=str(tmp_path / "y"), options=Options("none")))
    assert mine.read_text() == "precious"
