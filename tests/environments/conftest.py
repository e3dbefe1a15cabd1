"""Small wheels made here, so that most tests need no index."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hpctrain.run.system.tools import Tools
from hpctrain_plugins.environments.wheels import uv_tool
from tests.environments.indexes import Index
from tests.environments.small_wheel import wheel

SAY = "import sys\ndef say():\n    print(sys.prefix)\n"


def uv_wheel(shelf: Path) -> None:
    """uv as it is installed here, as a wheel: its program in `data/scripts`."""
    program = uv_tool.path(Tools())
    assert program, "uv of dev-requirements.txt is not beside this Python"
    info = "uv-1.0.dist-info"
    texts = {
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: uv\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(shelf / "uv-1.0-py3-none-any.whl", "w") as archive:
        archive.write(program, "uv-1.0.data/scripts/uv")
        for name, text in texts.items():
            archive.writestr(name, text)
        record = "".join(f"{n},,\n" for n in ("uv-1.0.data/scripts/uv", *texts, f"{info}/RECORD"))
        archive.writestr(f"{info}/RECORD", record)


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
