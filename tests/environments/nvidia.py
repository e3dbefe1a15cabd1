"""A stand-in for NVIDIA's image 25.03: a real Python with a real pip and 305 packages, of one module each.

Its pip obeys a constraint file of 309 lines. It has no GPU, and nothing that NVIDIA wrote.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

from tests.environments.small_wheel import wheel

ROOT = Path(__file__).parents[2]
PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"
LINES = 309
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
THERE = {
    "torch": "2.7.0a0+7c8ec84dab.nv25.3",
    "numpy": "1.26.4",
    "packaging": "23.2",
    "safetensors": "0.5.3",
    "flash_attn": "2.4.2",
}
"""What the public notes of users name; the rest is filled up."""
ABSENT = {"regex": "2024.11.6", "lightning-utilities": "0.14.0", "llvmlite": "0.42.0", "numba": "0.59.1"}
"""Lines of the file whose packages are not there."""


class Image:
    """The stand-in: a prefix of its own, whose programs see its constraint file as NVIDIA sets it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "bin/python3"
        self.constraint = folder / "constraint.txt"
        self._prefix(folder / f"lib/python{VERSION}")
        self.site = Path(self.run("python3", "-c", PURELIB).stdout.strip())
        self._pip()
        self.has = {**THERE, **{f"filler-{n}": f"1.{n}" for n in range(LINES - len(THERE) - len(ABSENT))}}
        for name, version in self.has.items():
            self._installed(name.replace("-", "_"), version)
        pins = {name.replace("_", "-"): version for name, version in (self.has | ABSENT).items()}
        lines = (f"export {name}={shlex.quote(value)}\n" for name, value in self.environ.items())
        (folder / "environment").write_text("".join(lines))
        self.constraint.write_text("".join(f"{name}=={version}\n" for name, version in sorted(pins.items())))

    @property
    def environ(self) -> dict[str, str]:
        """The variables of the image, as NVIDIA sets them."""
        return {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "PIP_CONSTRAINT": str(self.constraint),
            "CUDA_VERSION": "12.8.1",
            "NCCL_VERSION": "2.25.1",
        }

    def run(
        self, *argv: str, code: int = 0, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A program in the image; `python3` is its own."""
        step = {"HOME": str(self.folder), "PYTHONPATH": str(ROOT / "core"), "PYTHONNOUSERSITE": "1"}
        environ = {**step, **self.environ, **(env or {})}
        done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def listed(self) -> str:
        """What its step `inspect` prints."""
        return self.run("python3", "-m", "hpctrain_job.packages").stdout

    def versions(self, python: Path | None = None) -> dict[str, str]:
        """What a Python imports, by distribution: the image's own, or that of a venv on top."""
        listed = self.run(str(python or self.python), "-m", "pip", "list", "--format=json").stdout
        return {row["name"].replace("_", "-").lower(): row["version"] for row in json.loads(listed)}

    def _prefix(self, library: Path) -> None:
        """The standard library of this Python by links."""
        self.python.parent.mkdir(parents=True)
        library.mkdir(parents=True)
        real = Path(sys.base_prefix)
        shutil.copy(real / f"bin/python{VERSION}", self.python)
        for entry in (real / f"lib/python{VERSION}").iterdir():
            if entry.name not in ("site-packages", "dist-packages", "EXTERNALLY-MANAGED"):
                (library / entry.name).symlink_to(entry)

    def _pip(self) -> None:
        """What `ensurepip` installs: Debian's refuses outside of a venv, and its wheels lie elsewhere."""
        bundled = Path(sys.base_prefix, f"lib/python{VERSION}/ensurepip/_bundled")
        kept = bundled if bundled.is_dir() else Path("/usr/share/python-wheels")
        (pip,) = map(str, kept.glob("pip-*.whl"))
        others = map(str, kept.glob("setuptools-*.whl"))
        self.run(
            *("python3", "-m", "pip", "install", "--no-index", pip, *others),
            env={"PYTHONPATH": pip, "PIP_CONSTRAINT": ""},
        )

    def _installed(self, name: str, version: str) -> None:
        info = self.site / f"{name}-{version}.dist-info"
        info.mkdir()
        (self.site / f"{name}.py").write_text(f"VERSION = {version!r}\n")
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "INSTALLER").write_text("pip\n")
        files = (f"{name}.py", *(f"{info.name}/{file}" for file in ("METADATA", "INSTALLER", "RECORD")))
        (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def index(folder: Path) -> Path:
    """A folder of wheels: newer versions of what the image has, and what it lacks."""
    for name, versions in {
        "numpy": ("1.26.4", "2.5.5"),
        "packaging": ("23.2", "26.3"),
        "safetensors": ("0.5.3", "0.8.0"),
        "regex": ("2024.11.6", "2026.1.1"),
    }.items():
        for version in versions:
            # The index's own metadata asks for what the image does not keep: NVIDIA's builds do not either.
            wheel(folder, name, version, requires="not-anywhere==1" if version == "1.26.4" else "")
    wheel(folder, "trl", "0.23.1", requires="numpy>=1.20")
    wheel(folder, "tokenizers", "0.22.0", requires="regex")
    wheel(folder, "needs_new", "1.0", requires="safetensors>=0.8")
    return folder


BACKEND = """\
# Builds with the torch that is there, as flash-attn does.
import os, zipfile


def build_wheel(folder, *_):
    import torch

    info, name = "{name}-{version}.dist-info", "{name}-{version}-py3-none-any.whl"
    texts = {{
        "{name}.py": f"VERSION, AGAINST = '{version}', {{torch.VERSION!r}}\\n",
        f"{{info}}/METADATA": "Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n",
        f"{{info}}/WHEEL": "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }}
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        for file, text in texts.items():
            wheel.writestr(file, text)
        wheel.writestr(f"{{info}}/RECORD", "".join(f"{{n}},,\\n" for n in (*texts, f"{{info}}/RECORD")))
    return name
"""


def source(folder: Path, name: str, version: str) -> Path:
    """A source archive whose build needs the image's torch."""
    texts = {
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: torch\n",
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": BACKEND.format(name=name, version=version),
    }
    archive = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for file, text in texts.items():
            row = tarfile.TarInfo(f"{name}-{version}/{file}")
            row.size = len(text.encode())
            tar.addfile(row, io.BytesIO(text.encode()))
    return archive
