"""A package index over a folder of wheels and sdists, as HTML and as JSON (PEP 503, 658, 691)."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from html import escape
from pathlib import Path
from urllib.parse import unquote

from tests.twin.services.http import Answer, Ask, File

JSON = "application/vnd.pypi.simple.v1+json"


class Index:
    """A service: any path that ends in `simple/` is its root, so it stands for every index."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._hashes: dict[tuple[str, int], str] = {}

    def __call__(self, ask: Ask) -> Answer:
        """A list of projects, a project's files, or a file."""
        path = unquote(ask.path)
        if file := re.fullmatch(r"/files/([^/]+\.(?:whl|tar\.gz|zip))(\.metadata)?", path):
            return self._file(file[1], bool(file[2]))
        if project := re.fullmatch(
            r"/(?:.*/)?(?:simple|whl(?:/(?:cpu|xpu|cu\d+|rocm[\d.]+))?)(?:/([^/]+))?/?", path
        ):
            if not path.endswith("/"):
                return Answer(301, headers={"Location": f"{ask.url}{path}/"})
            name = project[1] or ""
            return self._project(ask, name) if name else self._projects(ask)
        return Answer(404, b"not found")

    def _names(self) -> dict[str, list[Path]]:
        found: dict[str, list[Path]] = {}
        for path in sorted(self.folder.iterdir()):
            found.setdefault(normal(path.name.split("-")[0]), []).append(path)
        return found

    def _projects(self, ask: Ask) -> Answer:
        names = list(self._names())
        if JSON in ask.headers.get("accept", ""):
            return _json({"meta": {"api-version": "1.0"}, "projects": [{"name": name} for name in names]})
        return _html("".join(f'<a href="{name}/">{name}</a>\n' for name in names))

    def _project(self, ask: Ask, name: str) -> Answer:
        files = self._names().get(normal(name), [])
        if not files:
            return Answer(404, b"not found")
        if JSON in ask.headers.get("accept", ""):
            rows = [
                {"filename": p.name, "url": f"{ask.url}/files/{p.name}", "hashes": {"sha256": self._hash(p)},
                 "size": p.stat().st_size, "core-metadata": p.suffix == ".whl"}
                for p in files
            ]  # fmt: skip
            return _json({"meta": {"api-version": "1.0"}, "name": normal(name), "files": rows})
        return _html("".join(
            f'<a href="{ask.url}/files/{escape(p.name)}#sha256={self._hash(p)}"'
            f'{" data-core-metadata=true" if p.suffix == ".whl" else ""}>{escape(p.name)}</a>\n'
            for p in files
        ))  # fmt: skip

    def _file(self, name: str, metadata: bool) -> Answer:
        path = self.folder / name
        if not path.is_file():
            return Answer(404, b"not found")
        if not metadata:
            return Answer(200, File(path), {"ETag": f'"{self._hash(path)}"'})
        with zipfile.ZipFile(path) as archive:
            inside = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
            return Answer(200, archive.read(inside))

    def _hash(self, path: Path) -> str:
        key = (path.name, path.stat().st_mtime_ns)
        if key not in self._hashes:
            self._hashes[key] = hashlib.sha256(path.read_bytes()).hexdigest()
        return self._hashes[key]


def normal(name: str) -> str:
    """A project's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _json(said: object) -> Answer:
    return Answer(200, json.dumps(said).encode(), {"Content-Type": JSON})


def _html(body: str) -> Answer:
    text = f"<!DOCTYPE html><html><body>\n{body}</body></html>"
    return Answer(200, text.encode(), {"Content-Type": "text/html"})
