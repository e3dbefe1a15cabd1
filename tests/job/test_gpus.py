"""The proof of torch and NCCL, against a library that is really loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpctrain_job import gpus

TORCH = """\
import ctypes
class version:
    cuda, hip = {cuda!r}, {hip!r}
__version__ = "2.9.0"
class cuda:
    device_count = staticmethod(lambda: {devices})
    is_available = staticmethod(lambda: False)
class xpu:
    device_count = staticmethod(lambda: {intel})
    is_available = staticmethod(lambda: {intel} > 0)
    get_device_name = staticmethod(lambda number: "Max 1550")
class ones:
    def __init__(self, count, device):
        assert device == "xpu"
    sum = lambda self: self
    item = lambda self: 2.0
for library in {libraries!r}:
    ctypes.CDLL(library)
"""
NCCL = "int ncclGetVersion(int *v) {{ *v = {code}; return 0; }}\n{more}\n"


def library(folder: Path, code: int, more: str = "") -> str:
    """A shared library that says it is this NCCL."""
    folder.mkdir()
    source, made = folder / "n.c", folder / "libnccl.so.2"
    source.write_text(NCCL.format(code=code, more=more))
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(made)], check=True)
    return str(made)


def proof(
    tmp_path: Path,
    *words: str,
    libraries: tuple[str, ...] = (),
    cuda: str = "12.6",
    hip: str = "",
    devices: int = 4,
    intel: int = 0,
) -> tuple[int, str]:
    """The exit code and what is said, with such a torch."""
    text = TORCH.format(cuda=cuda, hip=hip, devices=devices, intel=intel, libraries=libraries)
    (tmp_path / "torch.py").write_text(text)
    path = os.pathsep.join((str(tmp_path), *sys.path))
    done = subprocess.run(
        # -B: another torch of the same second and length would be taken for this one's compiled file
        [sys.executable, "-B", "-m", "hpctrain_job.gpus", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    return done.returncode, done.stdout + done.stderr


def test_all_as_asked(tmp_path: Path) -> None:
    nccl = library(tmp_path / "lib", 22705, "void ncclCommShrink(void) {}")
    words = ("--cuda=12.6", "--devices=4", "--nccl=2.27", "--symbol=ncclCommShrink")
    code, said = proof(tmp_path, *words, libraries=(nccl,))
    assert code == 0, said
    assert f"nccl 2.27.5 {nccl}" in said


@pytest.mark.parametrize(
    ("words", "torch", "says"),
    [
        (("--cuda=12.6",), {"cuda": "13.0"}, "is built for cuda 13.0, and 12.6 is wanted"),
        (("--cuda=12.6",), {"cuda": "12.61"}, "is built for cuda 12.61"),
        (("--hip=6.1",), {"cuda": "12.6"}, "is built for hip none, and 6.1 is wanted"),
        (("--devices=4",), {"devices": 1}, "torch sees 1 GPUs, and 4 are wanted"),
        (("--nccl=2.27",), {}, "no NCCL is loaded"),
    ],
)
def test_what_is_not_as_asked(
    tmp_path: Path, words: tuple[str, ...], torch: dict[str, object], says: str
) -> None:
    code, said = proof(tmp_path, *words, **torch)  # type: ignore[arg-type]
    assert (code, says in said) == (1, True), said


def test_where_no_torch_is_there_is_nothing_to_prove_unless_it_was_expected(tmp_path: Path) -> None:
    argv = [sys.executable, "-S", "-m", "hpctrain_job.gpus", "--devices=1"]  # -S: no package of this machine
    env = {"PYTHONPATH": str(Path(gpus.__file__).parents[1])}
    done = subprocess.run([*argv, "--if-there"], capture_output=True, text=True, env=env, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "no torch\n"), done.stderr
    done = subprocess.run(argv, capture_output=True, text=True, env=env, cwd=tmp_path)
    assert done.returncode == 1
    assert "No module named 'torch'" in done.stderr
    code, text = proof(tmp_path, "--devices=8", "--if-there")
    assert (code, "torch sees 4 GPUs, and 8 are wanted" in text) == (1, True)


def test_the_library_that_is_loaded_counts(tmp_path: Path) -> None:
    old = library(tmp_path / "system", 22606)
    code, said = proof(tmp_path, "--nccl=2.27", "--symbol=ncclCommShrink", libraries=(old,))
    assert code == 1
    assert f"{old} is 2.26.6, older than 2.27" in said
    assert f"{old} has no ncclCommShrink: a newer one must be preloaded" in said
    new = library(tmp_path / "own", 22705)
    code, said = proof(tmp_path, libraries=(old, new))
    assert code == 1
    assert "two are loaded" in said


def test_versions() -> None:
    assert gpus.older("2.26.6", "2.27")
    assert not gpus.older("2.27.5", "2.27")
    assert gpus.loaded("7f /a/libnccl.so.2.27.5\n7f /a/libnccl.so.2.27.5\n7f /b/librccl.so.1\n") == [
        "/a/libnccl.so.2.27.5",
        "/b/librccl.so.1",
    ]


def test_the_gpus_of_intel_are_counted_by_torch_too(tmp_path: Path) -> None:
    code, said = proof(tmp_path, "--devices=6", cuda="", devices=0, intel=6)
    assert (code, "gpus 6: Max 1550" in said) == (0, True), said
    code, said = proof(tmp_path, "--devices=6", cuda="", devices=0, intel=2)
    assert (code, "torch sees 2 GPUs, and 6 are wanted" in said) == (1, True), said
