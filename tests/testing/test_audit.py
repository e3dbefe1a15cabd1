"""The watch sees what a pure hook must not do, says which line did it, and sees nothing else."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from hpctrain.testing.audit import watched
from hpctrain.testing.purity import package_folders


def _set_variable() -> None:
    os.environ["HPCTRAIN_AUDIT"] = "1"
    del os.environ["HPCTRAIN_AUDIT"]


ACTS: dict[str, tuple[Callable[[], object], str]] = {
    "reads": (lambda: Path("/etc/passwd").read_bytes(), "open '/etc/passwd'"),
    "reads by number": (lambda: os.close(os.open("/etc/passwd", os.O_RDONLY)), "open '/etc/passwd'"),
    "lists": (lambda: list(Path("/etc").iterdir()), "'/etc'"),
    "globs": (lambda: list(Path("/etc").glob("*.conf")), "/etc"),
    "runs": (lambda: subprocess.run(["true"], check=True), "subprocess.Popen 'true'"),
    "shells": (lambda: os.system("true"), "os.system"),
    "calls": (lambda: socket.socket().close(), "socket.__new__"),
    "sets a variable": (_set_variable, "os.putenv"),
}


@pytest.mark.parametrize("what", ACTS)
def test_an_act_is_seen_with_its_line(what: str) -> None:
    act, said = ACTS[what]
    with watched(package_folders()) as seen:
        act()
    assert any(said in str(found) for found in seen.acts), list(map(str, seen.acts))
    assert all(found.where.startswith(f"{__file__}:") for found in seen.acts)


def test_writing_is_seen_even_where_reading_is_allowed(tmp_path: Path) -> None:
    with watched([str(tmp_path)]) as seen:
        (tmp_path / "a").write_text("x")
        (tmp_path / "a").read_text()
        (tmp_path / "a").rename(tmp_path / "b")
    assert [found.event for found in seen.acts] == ["open", "os.rename"]
    assert "for writing" in str(seen.acts[0])


def test_package_data_and_late_imports_are_no_acts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_late_module.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with watched(package_folders()) as seen:
        resources.files("hpctrain.render").joinpath("publish.sh").read_text(encoding="utf-8")
        __import__("a_late_module")
    del sys.modules["a_late_module"]
    assert seen.acts == []
    assert not (tmp_path / "__pycache__").exists(), "an import while watched leaves no byte code"


def test_a_module_that_reads_while_it_is_imported_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_reader.py").write_text("open('/etc/passwd').close()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with watched(package_folders()) as seen:
        __import__("a_reader")
    del sys.modules["a_reader"]
    assert [str(found) for found in seen.acts] == [
        f"{tmp_path}/a_reader.py:1 in <module>: open '/etc/passwd'"
    ]


def test_other_threads_and_what_comes_after_are_not_seen() -> None:
    with watched() as seen:
        other = threading.Thread(target=lambda: Path("/etc/passwd").read_bytes())
        other.start()
        other.join()
    Path("/etc/passwd").read_bytes()
    assert seen.acts == []
