"""What was published is compared with its manifest before a later step uses it again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hpctrain.run.artifacts.artifact import differing
from tests.house.sources import ROOT

PUBLISH = ROOT / "core/hpctrain/render/publish.sh"


@pytest.fixture
def link(tmp_path: Path) -> Path:
    """A folder of two files, published."""
    made = tmp_path / "thing"
    script = (
        f'. {PUBLISH}; hpc_begin {made}; mkdir -p "$WORK/a b"; echo 1 >"$WORK/one"; echo 2 >"$WORK/a b/two"'
    )
    subprocess.run(["bash", "-c", f"{script}; hpc_publish {made}"], check=True)
    return made


def flip(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    raw[0] ^= 1
    file.write_bytes(raw)


def test_as_it_was_published(link: Path) -> None:
    assert differing(link) == ""
    (link / "later").touch()  # what was added since does no harm
    assert differing(link) == ""


def test_the_file_that_differs_is_named(link: Path) -> None:
    flip(link / "a b/two")
    assert differing(link) == "a b/two"
    (link / "a b/two").unlink()
    assert differing(link) == "a b/two"


def test_bash_takes_the_link_away_and_python_agrees(link: Path) -> None:
    def sound() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", f". {PUBLISH}; hpc_sound {link}"], capture_output=True, text=True, check=False
        )

    assert sound().returncode == 0
    flip(link / "one")
    assert differing(link) == "one"
    done = sound()
    assert done.returncode != 0
    assert "content/one: FAILED" in done.stdout + done.stderr
    assert f"{link} is made anew" in done.stderr
    assert not link.is_symlink()


def test_no_manifest_is_no_content(link: Path) -> None:
    (link.resolve().parent / "MANIFEST").unlink()
    assert differing(link) == "MANIFEST"
