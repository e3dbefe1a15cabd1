"""`convert --job`: a run with one step, on this computer and planned for a cluster."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from hpctrain.cli import app
from hpctrain_plugins.checkpoints.cli import as_job
from hpctrain_plugins.checkpoints.options import ConvertOptions
from tests.checkpoints.conftest import read_safetensors
from tests.checkpoints.models import GPT_NEOX, make
from tests.patience import wait_for


def test_a_job_here_writes_what_the_command_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make(Path("model"), GPT_NEOX)
    line = ["convert", "model", "--to", "neox", "--tp", "2", "--naming", "legacy", "-o", "there", "--quiet"]
    assert app.run([*line, "--job", "--on", "local"]) == 0, capsys.readouterr().err
    wait_for("what the job writes", Path("there").exists, 60)
    assert app.run(["convert", "there", "-o", "back", "--quiet"]) == 0
    here, back = (
        {name: array.tobytes() for name, (_, array) in read_safetensors(tmp_path / folder).items()}
        for folder in ("model", "back")
    )
    assert here == back
    assert app.run([*line, "--job", "--on", "local"]) == 2
    assert "there exists already" in capsys.readouterr().err


@pytest.mark.parametrize("cluster", ["frontier", "leonardo"])
def test_a_cluster_runs_it_on_a_node_that_trains(cluster: str, tmp_path: Path) -> None:
    conversion = as_job.conversion(tmp_path / "a", "hf", tmp_path / "b", {"threads": 2})
    session = as_job.opened(tmp_path, [conversion], as_job.Where(on=cluster))
    (step,) = session.plan().steps
    assert (step.step.name, step.here) == ("convert", False)
    assert not [p for p in session.plan().problems if p.fatal]


@pytest.mark.skipif(platform.machine() == "aarch64", reason="these nodes are of this computer's kind")
def test_a_python_of_another_kind_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make(Path("model"), GPT_NEOX)
    assert app.run(["convert", "model", "--to", "neox", "-o", "x", "--job", "--on", "alps"]) == 2
    assert "error[architecture]" in capsys.readouterr().err
    assert not Path("x").exists()


def test_options_become_words_that_are_read_the_same(tmp_path: Path) -> None:
    said = {"source_format": "hf", "tp": 2, "masters": False, "base": Path("b"), "rope_interleaved": False}
    assert as_job.words(said) == [
        *("--from", "hf", "--tp", "2", "--base", str(Path("b").absolute()), "--no-rope-interleaved"),
    ]
    assert set(said) <= {name.name for name in ConvertOptions.__attrs_attrs__}
