"""The twins' conda channel: this Python as a conda package, and its pip; made once and cached.

The packages are what conda installs anywhere: files with their hashes, a prefix to replace, an index.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PLACEHOLDER_FILES = ("_sysconfigdata", "Makefile", "-config")
LEFT_OUT = {"test", "tests", "idlelib", "turtledemo", "lib2to3", "site-packages", "__pycache__", "tkinter"}
BUILD = "0_twin"
DEBIAN_LEFT_OUT = {"dist-packages", "EXTERNALLY-MANAGED", "sitecustomize.py"}
UPSTREAM = """
import os, site, sys

sys.real_prefix = sys.prefix  # for the defaults of its functions
import sysconfig

del sys.real_prefix
sysconfig._get_preferred_schemes = lambda: {
    "prefix": "posix_prefix", "home": "posix_home", "user": "posix_user"
}
site.addsitedir(os.path.join(sys.prefix, "lib", "python%d.%d" % sys.version_info[:2], "site-packages"))
"""
"""A Debian Python as conda has it: Debian's own looks for packages in `dist-packages`, and only there."""


def ensure(cache: Path) -> Path:
    """The channel for this Python below `cache`; built where it is not there yet."""
    said = f"{sys.version}{sys.base_prefix}{Path(__file__).read_text()}"
    channel = cache / f"channel-{hashlib.sha256(said.encode()).hexdigest()[:12]}"
    if not channel.exists():
        new = channel.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        for subdir in ("linux-64", "noarch"):
            (new / subdir).mkdir(parents=True)
        version = ".".join(map(str, sys.version_info[:3]))
        _write(new, "linux-64", "python", version, dict(_python(Path(sys.base_prefix))), needs=())
        for wheel in _wheels(Path(sys.base_prefix)):
            name, number, *_ = wheel.name.split("-")
            scripts = ("pip = pip._internal.cli.main:main",) if name == "pip" else ()
            _write(new, "noarch", name, number, _unzipped(wheel), needs=("python >=3.8",), scripts=scripts)
        _index(new)
        new.rename(channel)
    return channel


def _index(channel: Path) -> None:
    for subdir in ("linux-64", "noarch"):
        packages = {}
        for path in sorted((channel / subdir).glob("*.tar.bz2")):
            with tarfile.open(path) as archive:
                said = archive.extractfile("info/index.json")
                assert said is not None
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                packages[path.name] = {**json.load(said), "size": path.stat().st_size, "sha256": digest}
        text = json.dumps({"info": {"subdir": subdir}, "packages": packages, "repodata_version": 1})
        (channel / subdir / "repodata.json").write_text(text)


def _wheels(prefix: Path) -> list[Path]:
    """The pip that this Python brings, which Debian keeps in a folder of its own."""
    folder = sysconfig.get_config_var("WHEEL_PKG_DIR")
    return sorted(
        Path(folder).glob("*.whl") if folder else prefix.glob("lib/python3*/ensurepip/_bundled/*.whl")
    )


def _python(prefix: Path) -> Iterable[tuple[str, bytes | str]]:
    """Its files by path; a text is the target of a link. It finds its library beside itself."""
    short = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    program = (prefix / "bin" / short).read_bytes()
    rpath, own = f"{prefix}/lib\0".encode(), b"$ORIGIN/../lib\0"
    moved = program.replace(rpath, own.ljust(len(rpath), b"\0")) if len(own) <= len(rpath) else program
    yield f"bin/{short}", moved
    yield "bin/python3", short
    yield "bin/python", short
    for library in sorted(prefix.glob("lib/libpython3*.so*")):
        yield f"lib/{library.name}", str(library.readlink()) if library.is_symlink() else library.read_bytes()
    debian = "posix_local" in sysconfig.get_scheme_names()
    left_out = LEFT_OUT | DEBIAN_LEFT_OUT if debian else LEFT_OUT
    if debian:
        yield f"lib/{short}/sitecustomize.py", UPSTREAM.encode()
    for top in (prefix / "lib" / short, prefix / "include" / short):
        for path in sorted(top.rglob("*")):
            inside = path.relative_to(top).parts
            if path.is_file() and not left_out & set(inside) and path.suffix != ".a":
                yield path.relative_to(prefix).as_posix(), path.read_bytes()
    for header in prefix.glob(f"include/*/{short}/pyconfig.h"):  # Debian's other one only names this one
        yield f"include/{short}/pyconfig.h", header.read_bytes()


def _unzipped(wheel: Path) -> dict[str, bytes | str]:
    with zipfile.ZipFile(wheel) as archive:
        return {f"site-packages/{name}": archive.read(name) for name in archive.namelist() if name[-1] != "/"}


def _write(
    channel: Path,
    subdir: str,
    name: str,
    version: str,
    files: Mapping[str, bytes | str],
    *,
    needs: tuple[str, ...],
    scripts: tuple[str, ...] = (),
) -> None:
    """One package as a `.tar.bz2`, conda's first format, which the standard library writes."""
    index: dict[str, Any] = {
        "name": name, "version": version, "build": BUILD, "build_number": 0, "depends": list(needs),
        "subdir": subdir, "license": "PSF-2.0", "timestamp": 1_767_225_600_000,
    }  # fmt: skip
    info = {"info/index.json": index, "info/paths.json": {"paths_version": 1, "paths": _paths(files)}}
    if subdir == "noarch":
        index["noarch"] = "python"
        entry = {"type": "python", "entry_points": list(scripts)}
        info["info/link.json"] = {"package_metadata_version": 1, "noarch": entry}
    target = channel / subdir / f"{name}-{version}-{BUILD}.tar.bz2"
    with tarfile.open(target, "w:bz2", compresslevel=1) as archive:
        for path, said in info.items():
            _add(archive, path, json.dumps(said).encode())
        for path, body in files.items():
            _add(archive, path, body)


def _paths(files: Mapping[str, bytes | str]) -> list[dict[str, Any]]:
    rows = []
    for path, body in files.items():
        row: dict[str, Any] = {
            "_path": path,
            "path_type": "softlink" if isinstance(body, str) else "hardlink",
        }
        if isinstance(body, bytes):
            row |= {"sha256": hashlib.sha256(body).hexdigest(), "size_in_bytes": len(body)}
            if any(word in path for word in PLACEHOLDER_FILES) and sys.base_prefix.encode() in body:
                row |= {"prefix_placeholder": sys.base_prefix, "file_mode": "text"}
        rows.append(row)
    return rows


def _add(archive: tarfile.TarFile, path: str, body: bytes | str) -> None:
    entry = tarfile.TarInfo(path)
    entry.mode = 0o755 if path.startswith("bin/") or ".so" in path else 0o644
    if isinstance(body, str):
        entry.type, entry.linkname = tarfile.SYMTYPE, body
        archive.addfile(entry)
    else:
        entry.size = len(body)
        archive.addfile(entry, io.BytesIO(body))
