"""The zip that travels to the job: `hpctrain_job` and the packages that steps name."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import attrs
from attrs import frozen

from hpctrain.errors import PluginError
from hpctrain.run.system import files

JOB = "hpctrain_job"
ASIDE = "lib/"
"""In front of a package that must not hide the environment's own."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_COMPILED = (".pyc", ".so")
"""Nothing compiled here is of use there, and shared libraries are never imported from a zip."""


@frozen
class JobZip:
    """The bytes and their hash, which the record keeps."""

    data: bytes = attrs.field(repr=False)
    sha256: str


def build(packages: Iterable[str] = ()) -> JobZip:
    """`hpctrain_job` with `packages`, byte for byte the same for the same sources.

    Entries are sorted, dated 1980 and stored: compressed bytes depend on the zlib at hand, and
    Python imports stored modules faster.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for package in sorted({JOB, *packages}):
            for name, path in _sources(package):
                info = zipfile.ZipInfo(name, _EPOCH)
                info.create_system = _UNIX
                info.external_attr = 0o644 << 16
                with files.naming(path, "read"):
                    archive.writestr(info, path.read_bytes())
    data = buffer.getvalue()
    return JobZip(data, hashlib.sha256(data).hexdigest())


def _sources(package: str) -> Iterator[tuple[str, Path]]:
    folder = _folder(package.removeprefix(ASIDE))
    for path in sorted(folder.rglob("*"), key=lambda p: p.relative_to(folder).parts):
        below = path.relative_to(folder)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in below.parts)
        if path.is_file() and not hidden and path.suffix not in _COMPILED:
            yield f"{package}/{below.as_posix()}", path


def _folder(package: str) -> Path:
    spec = find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.origin or not spec.origin.endswith("__init__.py"):
        raise PluginError.of(
            "job-package",
            f"a step needs {package} in the job, which is not an installed package with an __init__.py",
        )
    return Path(spec.origin).parent
