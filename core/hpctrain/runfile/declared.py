"""Put the content of every file that a run names into its RunSpec, as hashes and texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs

from hpctrain.model.run import Asset, Environment, Package, RunSpec
from hpctrain.runfile.faults import Fault, Mismatch, shown_as
from hpctrain.runfile.keys import Keys
from hpctrain.runfile.reading.text import MAX_BYTES

Base = Callable[[Keys], Path]
"""The folder from which a relative path at this key counts."""


class Reader:
    """Reads declared files and keeps what it found and what was missing."""

    def __init__(self, base: Base) -> None:
        self.base = base
        self.faults: list[Fault] = []
        self.hashes: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self.files: dict[str, Path] = {}
        self.contents: dict[str, str] = {}

    def hash(self, name: str, path: Keys) -> str:
        """The content's hash, "" with a fault where it cannot be read."""
        from hpctrain_job.tree import digest  # most run files name no folder of their own

        file = self.base(path) / Path(name).expanduser()
        try:
            content_hash = digest(file)
        except FileNotFoundError:
            self._fault("no-file", f"is {shown_as(name)}, which does not exist", path)
        except (OSError, ValueError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            self._fault("unreadable", f"is {shown_as(name)}, which cannot be read: {reason}", path)
        else:
            self.files[name] = file
            self.contents[name] = content_hash
            return content_hash
        return ""

    def input(self, name: str, path: Keys, *, text: bool = False) -> None:
        """Note a file's hash and, for one that hooks read, its text."""
        content_hash = self.hash(name, path)
        if not content_hash:
            return
        self.hashes[name] = content_hash
        if text:
            self._text(name, path)

    def _text(self, name: str, path: Keys) -> None:
        try:
            raw = self.files[name].read_bytes()
            if len(raw) > MAX_BYTES:
                self._fault("too-large", f"is {shown_as(name)}, over {MAX_BYTES:,} bytes", path)
            else:
                self.texts[name] = raw.decode()
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            message = f"is {shown_as(name)}, not UTF-8: byte 0x{raw[error.start]:02x} in line {line}"
            self._fault("encoding", message, path)
        except IsADirectoryError:
            self._fault("is-folder", f"is {shown_as(name)}, a folder; a file is needed", path)

    def _fault(self, code: str, message: str, path: Keys) -> None:
        self.faults.append(Fault(code=code, complaint=message, path=path))


def declare(run: RunSpec, base: Base) -> tuple[RunSpec, Reader]:
    """The run with the hashes and texts of its files, and who read them."""
    reader = Reader(base)
    environment = run.environment
    environment = attrs.evolve(
        environment,
        packages=_packages(reader, environment.packages, "packages"),
        compile=_packages(reader, environment.compile, "compile"),
    )
    assets = {name: _asset(reader, name, asset) for name, asset in run.assets.items()}
    code = run.code
    if code is not None and code.path:
        code = attrs.evolve(code, sha256=reader.hash(code.path, ("code", "path")))
    _texts(reader, run, environment)
    if reader.faults:
        raise Mismatch(reader.faults)
    run = attrs.evolve(
        run,
        environment=environment,
        assets=assets,
        code=code,
        inputs=reader.hashes,
        texts=reader.texts,
    )
    return run, reader


def _packages(reader: Reader, packages: tuple[Package, ...], key: str) -> tuple[Package, ...]:
    return tuple(
        attrs.evolve(p, sha256=reader.hash(p.path, ("environment", key, number, "path"))) if p.path else p
        for number, p in enumerate(packages)
    )


def _asset(reader: Reader, name: str, asset: Asset) -> Asset:
    for number, input_name in enumerate(asset.inputs):
        reader.input(input_name, ("assets", name, "inputs", number))
    if not asset.path or asset.path.startswith(("/", "~")):
        return asset  # a place on the cluster, the same for whoever plans from wherever
    content_hash = reader.hash(asset.path, ("assets", name, "path"))
    if asset.sha256 and content_hash and content_hash != asset.sha256:
        message = f"is {asset.sha256[:12]}...; the content of {asset.path} is {content_hash[:12]}..."
        reader.faults.append(Fault(code="hash", complaint=message, path=("assets", name, "sha256")))
    return attrs.evolve(asset, sha256=content_hash)


def _texts(reader: Reader, run: RunSpec, environment: Environment) -> None:
    if environment.requirements:
        reader.input(environment.requirements, ("environment", "requirements"), text=True)
    if run.hooks.file:
        reader.input(run.hooks.file, ("hooks", "file"))
    for table, use, options in (
        ("environment", environment.use, environment.options),
        ("train", run.train.use, run.train.options),
    ):
        for name, path in _named_files(options):
            reader.input(name, (table, use, *path), text=True)


def _named_files(options: Any) -> Iterator[tuple[str, Keys]]:
    """Values of fields with the metadata `{"input": True}`: one path or several."""
    for field in attrs.fields(type(options)) if attrs.has(type(options)) else ():
        if not field.metadata.get("input"):
            continue
        value = getattr(options, field.name)
        if isinstance(value, str) and value:
            yield value, (field.name,)
        elif isinstance(value, tuple):
            yield from ((name, (field.name, number)) for number, name in enumerate(value))
