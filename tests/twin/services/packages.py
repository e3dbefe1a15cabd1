"""Packages of the twins' index that stand for large ones: under the real names and versions, but small.

They behave like the real ones where building is concerned. mamba-ssm and causal-conv1d first look
for a prebuilt wheel on the network, and only an HTTP error makes them compile; flash-attn imports
what it does not declare, so it is built without isolation.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tests.twin.services import libraries, torch

ANY, NCCL_TAG = "py3-none-any", "py3-none-manylinux2014_x86_64"
SAID = "a twin's stand-in: small, under a real name"
SETUPTOOLS = '[build-system]\nrequires = ["setuptools>=61"]\nbuild-backend = "setuptools.build_meta"\n'
GUESS = """
import os, urllib.error, urllib.request
from setuptools import setup, Extension
from setuptools.command.bdist_wheel import bdist_wheel

URL = "https://github.com/{owner}/releases/download/v{version}/{module}.whl"

class Guess(bdist_wheel):
    def run(self):
        if os.environ.get("{switch}", "FALSE") == "TRUE":
            return super().run()
        try:
            urllib.request.urlretrieve(URL, "guessed.whl")
        except urllib.error.HTTPError:
            print("Precompiled wheel not found. Building from source...")
            super().run()

setup(ext_modules=[Extension("{module}._C", ["{module}/kernel.c"])], cmdclass={{"bdist_wheel": Guess}})
"""
IMPORTS = """
import ninja
from setuptools import setup, Extension

setup(ext_modules=[Extension("{module}._C", ["{module}/kernel.c"])])
"""
STARTS_WITH = (
    *("deepspeed", "numpy", "packaging", "pybind11", "pyyaml", "requests", "sentencepiece"),
    *("tokenizers", "transformers"),
)
"""What GPT-NeoX starts with, besides torch."""
KERNEL = """
#include <Python.h>
static PyObject *total(PyObject *self, PyObject *args) {
    double sum = 0, value; Py_ssize_t i; PyObject *list;
    if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &list)) return NULL;
    for (i = 0; i < PyList_GET_SIZE(list); i++) {
        value = PyFloat_AsDouble(PyList_GET_ITEM(list, i));
        if (PyErr_Occurred()) return NULL;
        sum += value;
    }
    return PyFloat_FromDouble(sum);
}
static PyMethodDef methods[] = {{"total", total, METH_VARARGS, NULL}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", NULL, -1, methods};
PyMODINIT_FUNC PyInit__C(void) { return PyModule_Create(&module); }
"""


def write(folder: Path) -> None:
    """Write all packages into a folder, beside the real ones that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, version, owner, switch in (
        ("causal-conv1d", "1.5.3", "Dao-AILab/causal-conv1d", "CAUSAL_CONV1D_FORCE_BUILD"),
        ("mamba-ssm", "2.2.5", "state-spaces/mamba", "MAMBA_FORCE_BUILD"),
    ):
        module = name.replace("-", "_")
        setup = GUESS.format(owner=owner, version=version, switch=switch, module=module)
        extension(folder, name, version, setup)
    for version in ("2.5.8", "2.6.3"):
        extension(folder, "flash-attn", version, IMPORTS.format(module="flash_attn"))
    for version in ("1.0", "1.1"):
        _wheel(folder, "twin-pure", version)
    for name in set(STARTS_WITH) - {"packaging"}:  # the real one is there
        _wheel(folder, name, "1.0")
    _wheel(folder, "twin-backend", "1.0", "from setuptools.build_meta import *\n")
    for version in ("2.26.2", "2.27.5"):
        _nccl(folder, version)
    for version, nccl in (("2.7.1", "2.26.2"), ("2.9.0", "2.27.5"), ("2.10.0", "2.27.5")):
        more = f"Requires-Dist: nvidia-nccl-cu12=={nccl}\n"
        archive(folder, "torch", version, torch.files(version, "12.6", nccl), NCCL_TAG, more)
    needs = (
        '[build-system]\nrequires = ["setuptools>=61", "twin-backend==1.0"]\nbuild-backend = "twin_backend"\n'
    )
    plain = 'from setuptools import setup\n\nsetup(packages=["twin_needs"])\n'
    _sdist(folder, "twin-needs", "2.0", {"pyproject.toml": needs, "setup.py": plain})


def extension(folder: Path, name: str, version: str, setup: str, more: str = "") -> None:
    """A source archive with a few lines of C, built as its `setup.py` says; `more` ends its module."""
    module = name.replace("-", "_")
    kernel = {f"{module}/kernel.c": KERNEL, f"{module}/__init__.py": f"from ._C import total\n{more}"}
    _sdist(folder, name, version, {"pyproject.toml": SETUPTOOLS, "setup.py": setup, **kernel})


def _metadata(name: str, version: str) -> str:
    return f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {SAID}\n"


def _sdist(folder: Path, name: str, version: str, files: Mapping[str, str]) -> None:
    module = name.replace("-", "_")
    config = f"[metadata]\nname = {name}\nversion = {version}\n[options]\npackages = {module}\n"
    said = {"PKG-INFO": _metadata(name, version), "setup.cfg": config, f"{module}/__init__.py": "", **files}
    with tarfile.open(folder / f"{module}-{version}.tar.gz", "w:gz", compresslevel=1) as archive:
        for path, text in said.items():
            entry = tarfile.TarInfo(f"{module}-{version}/{path}")
            body = text.encode()
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))


def _nccl(folder: Path, version: str) -> None:
    """The NCCL that comes with torch's wheels, at its place in them."""
    with tempfile.TemporaryDirectory() as made:
        library = Path(made) / "libnccl.so.2"
        libraries.build("nccl", version, library)
        body = library.read_bytes()
    archive(folder, "nvidia-nccl-cu12", version, {"nvidia/nccl/lib/libnccl.so.2": body}, NCCL_TAG)


def _wheel(folder: Path, name: str, version: str, text: str = "") -> None:
    module = f"{name.replace('-', '_')}.py"
    archive(folder, name, version, {module: (text or f'VERSION = "{version}"\n').encode()})


def archive(
    folder: Path, name: str, version: str, content: Mapping[str, bytes], tag: str = ANY, more: str = ""
) -> None:
    """A wheel with these files; `more` are lines of its metadata."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    pure = "true" if tag == ANY else "false"
    files = {
        **content,
        f"{info}/METADATA": f"{_metadata(name, version)}{more}".encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode(),
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(folder / f"{module}-{version}-{tag}.whl", "w") as wheel:
        for path, body in {**files, f"{info}/RECORD": record.encode()}.items():
            wheel.writestr(path, body)
