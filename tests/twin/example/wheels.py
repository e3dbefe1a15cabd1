"""Make tiny wheels: `wheels.py FOLDER NAME==VERSION…` stands in for an index where packages do not matter."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path


def wheel(folder: Path, name: str, version: str) -> Path:
    """A wheel with one module that knows its version."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": f'__version__ = "{version}"\n',
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": rows}.items():
            archive.writestr(path, text)
    return made


def main(argv: Sequence[str]) -> None:
    """The command line."""
    for one in argv[1:]:
        wheel(Path(argv[0]), *one.split("==", 1))


if __name__ == "__main__":
    main(sys.argv[1:])
