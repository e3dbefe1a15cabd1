"""A wheel made by hand: also the whole of a build back end that tests put beside a package."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path


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
