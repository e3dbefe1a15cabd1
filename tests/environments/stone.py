"""A real C extension as a source archive, with a build back end that needs no tool from an index."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

C = """\
#define PY_SSIZE_T_CLEAN
#include <Python.h>
static PyObject *weight(PyObject *self, PyObject *args) { return PyUnicode_FromString(AGAINST); }
static PyMethodDef methods[] = {{"weight", weight, METH_NOARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "stone", "", -1, methods};
PyMODINIT_FUNC PyInit_stone(void) { return PyModule_Create(&module); }
"""

BACKEND = '''\
"""Compiles stone.c against alpha, with what `chisel` says."""
import os, subprocess, sysconfig, zipfile


def build_wheel(folder, *_):
    import alpha
    import chisel

    if os.environ.get("STONE_FETCHES") == "urllib":
        import urllib.request
        urllib.request.urlretrieve("http://wheels.example.org/stone.whl", "stone.whl")
    if os.environ.get("STONE_FETCHES") == "socket":
        import socket
        socket.create_connection(("192.0.2.1", 80), timeout=5)
    if os.environ.get("STONE_FETCHES") == "git":
        subprocess.run(["git", "ls-remote", "https://git.example.org/stone"], check=True)
    tag = sysconfig.get_config_var("SOABI").replace(".", "_")
    name = "stone-VERSION-py3-none-linux_" + os.uname().machine + ".whl"
    library = "stone" + sysconfig.get_config_var("EXT_SUFFIX")
    against = f'-DAGAINST="{alpha.VERSION} {os.environ.get("STONE_FLAVOUR", "plain")}"'
    include = sysconfig.get_path("include")
    cc = os.environ.get("CC", "cc")
    flags = ["-shared", "-fPIC", chisel.FLAG, against, "-I", include]
    subprocess.run([cc, *flags, "stone.c", "-o", library], check=True)
    info = "stone-VERSION.dist-info"
    texts = {
        f"{info}/METADATA": "Metadata-Version: 2.1\\nName: stone\\nVersion: VERSION\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: false\\nTag: py3-none-any\\n",
    }
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.write(library)
        for file, text in texts.items():
            wheel.writestr(file, text)
        record = "".join(f"{n},,\\n" for n in (library, *texts, f"{info}/RECORD"))
        wheel.writestr(f"{info}/RECORD", record)
    return name
'''

PYPROJECT = (
    '[build-system]\nrequires = ["chisel>=1"]  # a tool\nbuild-backend = "backend"\nbackend-path = ["."]\n'
)


def sources(version: str) -> dict[str, str]:
    """The files of the archive."""
    return {
        "PKG-INFO": f"Metadata-Version: 2.1\nName: stone\nVersion: {version}\nRequires-Dist: beta\n",
        "pyproject.toml": PYPROJECT,
        "backend.py": BACKEND.replace("VERSION.dist", f"{version}.dist")
        .replace("-VERSION-", f"-{version}-")
        .replace("Version: VERSION", f"Version: {version}"),
        "stone.c": C,
    }


def archive(folder: Path, version: str = "1.0") -> Path:
    """stone-VERSION.tar.gz."""
    path = folder / f"stone-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name, text in sources(version).items():
            info = tarfile.TarInfo(f"stone-{version}/{name}")
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return path


def tree(folder: Path) -> Path:
    """The same as a folder of the user's."""
    folder.mkdir()
    for name, text in sources("1.0").items():
        (folder / name).write_text(text)
    return folder
