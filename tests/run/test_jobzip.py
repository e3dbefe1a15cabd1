"""The zip that travels to the job."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from hpctrain.errors import PluginError
from hpctrain.run.prepare import jobzip


def package(folder: Path, name: str) -> Path:
    path = folder / name
    (path / "deep").mkdir(parents=True)
    (path / "__init__.py").write_text("from .deep import VALUE\n")
    (path / "deep" / "__init__.py").write_text("VALUE = 42\n")
    (path / "__main__.py").write_text(f"import {name}, inspect\nprint({name}.VALUE)\n")
    (path / "_fast.cpython-311-x86_64-linux-gnu.so").write_bytes(b"")
    (path / "__pycache__").mkdir()
    (path / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"")
    (path / ".hidden").write_text("")
    return path


@pytest.fixture
def extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return package(tmp_path, "extra_job")


def test_the_zip_holds_sources_only(extra: Path) -> None:
    names = zipfile.ZipFile(BytesIO(jobzip.build(["extra_job"]).data)).namelist()
    assert "hpctrain_job/__init__.py" in names
    assert [n for n in names if n.startswith("extra_job/")] == [
        "extra_job/__init__.py",
        "extra_job/__main__.py",
        "extra_job/deep/__init__.py",
    ]


def test_what_goes_aside_does_not_hide_the_environments_own(extra: Path) -> None:
    names = zipfile.ZipFile(BytesIO(jobzip.build(["lib/extra_job"]).data)).namelist()
    assert "lib/extra_job/__init__.py" in names
    assert not [n for n in names if n.startswith("extra_job")]


def test_the_same_sources_give_the_same_bytes(extra: Path) -> None:
    first = jobzip.build(["extra_job"])
    for path in extra.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o755)
    again = jobzip.build(["extra_job", "extra_job", "hpctrain_job"])
    assert first == again
    assert first.sha256 == hashlib.sha256(first.data).hexdigest()
    (extra / "__init__.py").write_text("VALUE = 43\n")
    assert jobzip.build(["extra_job"]) != first


def test_a_package_runs_from_the_zip(extra: Path, tmp_path: Path) -> None:
    (tmp_path / "job.zip").write_bytes(jobzip.build(["extra_job"]).data)
    environment = {"PYTHONPATH": str(tmp_path / "job.zip"), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-m", "extra_job"], env=environment, capture_output=True, text=True, cwd="/"
    )
    assert (done.stdout, done.stderr) == ("42\n", "")


@pytest.mark.parametrize("name", ["no_such_package_x", "json.decoder", "base64", "../x", ""])
def test_what_cannot_travel_is_said(name: str) -> None:
    with pytest.raises(PluginError, match="which is not an installed package"):
        jobzip.build([name])


def test_a_namespace_is_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "only_namespace_x").mkdir()
    with pytest.raises(PluginError, match="only_namespace_x"):
        jobzip.build(["only_namespace_x"])
