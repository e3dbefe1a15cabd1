"""Source archives from an index, read and never run."""

from __future__ import annotations

import io
import re
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from hpctrain_job import sdist
from hpctrain_job.downloads.web import WrongContent
from hpctrain_job.sdist import Places
from hpctrain_job.tree import digest
from tests.environments import stone


@pytest.fixture
def index(tmp_path: Path) -> str:
    """An index as a folder of pages."""
    (tmp_path / "files").mkdir()
    made = stone.archive(tmp_path / "files")
    page = tmp_path / "simple/stone/index.html"
    page.parent.mkdir(parents=True)
    other = '<a href="../../files/stone-1.0-py3-none-any.whl">stone-1.0-py3-none-any.whl</a>'
    page.write_text(f'{other}<a href="{made.as_uri()}#sha256={digest(made)}">{made.name}</a>')
    return (tmp_path / "simple").as_uri()


def test_found_and_read(index: str, tmp_path: Path) -> None:
    found = sdist.fetch("stone", "1.0", tmp_path, Places((index,)))
    assert (found.build, found.requires) == (("chisel>=1",), ("beta",))
    assert found.sha256 == digest(tmp_path / "stone-1.0.tar.gz")


def test_another_file_than_the_index_names_is_refused(index: str, tmp_path: Path) -> None:
    (tmp_path / "files/stone-1.0.tar.gz").write_bytes(b"something else")
    with pytest.raises(WrongContent, match="has the hash"):
        sdist.fetch("stone", "1.0", tmp_path, Places((index,)))
    assert not (tmp_path / "stone-1.0.tar.gz").exists()


def _tar(files: dict[str, bytes]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as tar:
        for name, body in files.items():
            member = tarfile.TarInfo(f"stone-1.0/{name}")
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    return whole.getvalue()


GOOD = {"PKG-INFO": b"Name: stone\n", "x": b"y" * 5000}


@pytest.mark.parametrize(
    ("end", "content"),
    [
        (".tar.gz", b"no archive"),
        (".tar.gz", _tar(GOOD)[:60]),
        (".tar.gz", _tar({"pyproject.toml": b'[build-system]\nrequires = ["a" "b" "c]"\n, 1e]\n'})),
        (".zip", b"PK\x03\x04 no archive"),
        (".zip", b""),
    ],
)
def test_a_damaged_archive_is_one_error(tmp_path: Path, end: str, content: bytes) -> None:
    file = tmp_path / f"stone-1.0{end}"
    file.write_bytes(content)
    with pytest.raises(WrongContent, match=f"{re.escape(file.name)} is no source archive"):
        sdist.read(file)


def test_a_text_that_is_far_larger_unpacked_is_not_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "stone-1.0.zip"
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("stone-1.0/PKG-INFO", "w", force_zip64=True) as member,
    ):
        for _ in range(128):
            member.write(b"Requires-Dist: beta\n" * 52_429)
    tracemalloc.start()
    requires = sdist.read(file).requires
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert set(requires) == {"beta"}
    assert peak < 64 << 20


@pytest.mark.parametrize(("name", "version"), [("stone", "2.0"), ("sto", "1.0"), ("nothing", "1.0")])
def test_what_no_index_has(index: str, tmp_path: Path, name: str, version: str) -> None:
    with pytest.raises(sdist.NotThere, match=f"no index has the source of {name} {version}"):
        sdist.fetch(name, version, tmp_path, Places((index,)))


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("", ("setuptools", "wheel")),
        ("[tool.x]\nrequires = ['no']\n", ("setuptools", "wheel")),
        ('[build-system]\nrequires = ["a[x]>=1", "b"]\n', ("a[x]>=1", "b")),
        (
            '[build-system]\nbuild-backend = "x"\nrequires = [\n  "a", # why ]\n  \'b\',\n]\n[tool]\n',
            ("a", "b"),
        ),
    ],
)
def test_what_a_source_is_built_with(text: str, needs: tuple[str, ...]) -> None:
    assert sdist.build_needs(text) == needs


def test_where_pip_is_told_to_look(tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = https://a.example/simple\nextra-index-url =\n  https://b.example\n"
    )
    told = {"HOME": str(tmp_path), "PIP_CONFIG_FILE": str(file), "PIP_FIND_LINKS": "/one /two"}
    found = sdist.configured(told)
    assert found.indexes == ("https://a.example/simple", "https://b.example")
    assert found.links == ("/one", "/two")
    assert sdist.configured({**told, "PIP_NO_INDEX": "1"}).indexes == ()


def test_the_command_line(index: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = digest(tmp_path / "files/stone-1.0.tar.gz")
    argv = [str(tmp_path / "out"), f"stone==1.0={right}", "--index-url", index]
    assert sdist.main(argv) == 0
    assert (tmp_path / "out/stone/stone-1.0.tar.gz").is_file()
    assert sdist.main([str(tmp_path / "out"), "stone==1.0=" + "0" * 64, "--index-url", index]) == 65
    assert sdist.main([str(tmp_path / "out"), "stone==9", "--index-url", index]) == 66
    assert "no index has the source of stone 9; there is 1.0" in capsys.readouterr().err
