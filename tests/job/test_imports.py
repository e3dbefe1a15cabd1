"""The proof of an environment, tried on the one that runs the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain_job import imports


def test_distributions_are_imported_by_what_they_bring(capsys: pytest.CaptureFixture[str]) -> None:
    assert imports.main(["attrs", "PyYAML"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["python", "attrs", "PyYAML"]
    assert imports.modules("PyYAML") == ["yaml"]


def test_every_failure_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)\n")
    info = tmp_path / "leaves-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: leaves\nVersion: 1\n")
    (info / "RECORD").write_text("leaves.py,,\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert imports.main(["leaves", "nothing-of-this-name"]) == 1
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 1
    assert said.err.splitlines() == [
        "leaves cannot be imported: SystemExit: 3",
        "nothing-of-this-name is not installed",
    ]
