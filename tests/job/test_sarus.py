"""Whether Sarus Suite's store still has an image, by what its tool prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain_job import sarus

# As CSCS's page has it.
TABLE = """\
REPOSITORY                     TAG           IMAGE ID      CREATED        SIZE        R/O
docker.io/library/debian       trixie        94d8be26824c  2 weeks ago    146 MB      false
localhost/hpctrain/mine        0123456789ab  e45475209a1d  8 weeks ago    66.3 kB     true
"""


@pytest.mark.parametrize(
    ("reference", "there"),
    [
        ("localhost/hpctrain/mine:0123456789ab", True),
        ("localhost/hpctrain/mine:ba9876543210", False),
        ("docker.io/library/debian:trixie", False),
    ],
)
def test_an_image_of_the_read_only_store_is_found(
    reference: str,
    there: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tool = tmp_path / "sarusctl"
    tool.write_text(f"#!/bin/sh\ncat <<'E'\n{TABLE}E\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    note = tmp_path / "note"
    note.write_text("")
    assert sarus.main([reference, str(note)]) == (0 if there else 7)
    assert note.exists() == there
    assert ("is gone: submit again" in capsys.readouterr().err) != there


def test_a_machine_without_the_tool_keeps_the_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "note").write_text("")
    assert sarus.main(["localhost/hpctrain/mine:0", str(tmp_path / "note")]) == 6
    assert (tmp_path / "note").exists()
