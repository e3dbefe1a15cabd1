"""What a job begins with: where the first attempt starts, then its own newest checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain_job import begin, resume

NAME = r"global_step(?P<step>\d+)"


def _saved(folder: Path, step: int, *, whole: bool = True) -> Path:
    path = folder / f"global_step{step}"
    path.mkdir(parents=True)
    (path / "last" if whole else path / "cut").write_text(str(step))
    return path


def _begin(folder: Path, *more: str) -> int:
    """One attempt as the job's line makes it; the job has just written both configurations."""
    (folder / "neox.yml").write_text("load: own")
    (folder / "first-neox.yml").write_text("load: start")
    configs = (f"--config={folder}/neox.yml", f"--first={folder}/first-neox.yml")
    return begin.main(
        [str(folder / "start"), str(folder / "own"), f"--name={NAME}", "--last=last", *configs, *more]
    )


def test_a_cut_checkpoint_is_no_reason_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "start").mkdir()
    assert _begin(tmp_path) == 0
    assert (tmp_path / "neox.yml").read_text() == "load: start"
    _saved(tmp_path / "own", 5, whole=False)
    assert _begin(tmp_path) == 0
    assert capsys.readouterr().out == f"{tmp_path}/start\n" * 2
    whole = _saved(tmp_path / "own", 7)
    assert _begin(tmp_path) == 0
    assert (tmp_path / "neox.yml").read_text() == "load: own"
    assert capsys.readouterr().out == f"{whole}\n"


def test_later_attempts_do_not_need_the_start(tmp_path: Path) -> None:
    _saved(tmp_path / "own", 7)
    assert _begin(tmp_path, "--needs=latest") == 0


@pytest.mark.parametrize("needs", [(), ("--needs=latest",)])
def test_a_start_that_is_not_there_ends_the_job(
    tmp_path: Path, needs: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    if needs:
        (tmp_path / "start").mkdir()
    assert _begin(tmp_path, *needs) == 1
    answer = capsys.readouterr()
    assert answer.out == ""
    assert f"{tmp_path}/start{'/latest' if needs else ''} does not exist" in answer.err


def test_damage_never_leads_back_to_the_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "start").mkdir()
    path = _saved(tmp_path / "own", 7)
    resume.write_manifest(path)
    (path / "last").write_text("flipped")
    assert _begin(tmp_path) == 1
    assert "is whole, and starting anew would lose them" in capsys.readouterr().err
