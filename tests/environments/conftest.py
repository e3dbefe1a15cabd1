"""Small wheels made here, so that most tests need no index."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.environments.indexes import Index


def wheel(
    folder: Path,
    name: str,
    version: str,
    *,
    requires: str = "",
    code: str = "",
    tag: str = "py3-none-any",
    more: Mapping[str, str] | None = None,
) -> Path:
    """A wheel of one module, or of the files in `more` instead."""
    info = f"{name}-{version}.dist-info"
    path = folder / f"{name}-{version}-{tag}.whl"
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    files = {
        **(more or {f"{name}.py": code or f"VERSION = {version!r}\n"}),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: {tag}\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name}-say = {name}:say\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{n},,\n" for n in (*files, f"{info}/RECORD"))
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return path


SAY = "import sys\ndef say():\n    print(sys.prefix)\n"


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """alpha 1.0 and 2.0, and beta 1.0 which needs alpha below 2."""
    folder = tmp_path / "shelf"
    wheel(folder, "alpha", "1.0", code=SAY)
    wheel(folder, "alpha", "2.0", code=SAY)
    wheel(folder, "beta", "1.0", requires="alpha<2", code="import alpha\n")
    return folder


@pytest.fixture
def serve() -> Iterator[Callable[..., Index]]:
    """Starts package indexes, which end with the test."""
    started: list[Index] = []

    def start(*words: Any, **more: Any) -> Index:
        started.append(Index(*words, **more))
        return started[-1]

    yield start
    for index in started:
        index.close()
