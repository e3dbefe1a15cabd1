"""A conda channel over a folder: plain files."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from tests.twin.services.http import Answer, Ask, File


class Channel:
    """A service: `https://conda.anaconda.org/NAME/...` gives the same files whatever NAME is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, ask: Ask) -> Answer:
        """A file, or nothing."""
        parts = unquote(ask.path).strip("/").split("/")
        path = self.folder.joinpath(*parts[1:])
        return Answer(404, b"not found") if ".." in parts or not path.is_file() else Answer(200, File(path))
