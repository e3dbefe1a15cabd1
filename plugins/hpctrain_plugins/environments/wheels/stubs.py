"""Wheels of metadata alone, so that a resolver learns what a package needs without running its code.

What is compiled learns its metadata only by running its own set-up, which as a rule wants torch and a
compiler. Its source archive says the same in PKG-INFO; this is handed to pip and uv as a wheel.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
from attrs import frozen

from hpctrain.plugin import ConfigError, Pin
from hpctrain_plugins.environments.wheels import index_failures
from hpctrain_plugins.environments.wheels.compiled import NEEDS
from hpctrain_plugins.environments.wheels.packages_spec import PackagesSpec, Source

if TYPE_CHECKING:
    from hpctrain_job.sdist import Places, SourceArchive


@frozen(kw_only=True)
class Stubs:
    """The compiled packages of an environment as a resolver sees them."""

    folder: Path
    archives: Mapping[str, str] = attrs.field(factory=dict)
    """Name to the hash of its source."""
    needs: tuple[Pin, ...] = ()
    """What each is built with, as pins."""

    @property
    def requirements(self) -> tuple[str, ...]:
        """What must be resolved with the rest so that the builds find their tools."""
        return tuple(r.strip() for pin in self.needs for r in pin.value.split(";") if r.strip())

    def pins(self, version: Mapping[str, str]) -> list[Pin]:
        """The pins of the source archives, with what their builds need."""
        source_pins = [Pin(n, "pypi", f"{version[n]} sha256:{digest}") for n, digest in self.archives.items()]
        return [*source_pins, *self.needs]


def make(spec: PackagesSpec, places: Places, folder: Path) -> Stubs:
    """A stub for each package of the index that is compiled; their archives are read and dropped."""
    archives, needs = {}, []
    for source in spec.compile:
        if source.version:
            archive = _fetched(source, places, spec)
            write(folder, source.name, source.version, archive.requires)
            archives[source.name] = archive.sha256
            needs.append(Pin(source.name, NEEDS, "; ".join(_plain(archive.build))))
    return Stubs(folder=folder, archives=archives, needs=tuple(needs))


def _plain(requirements: Iterable[str]) -> list[str]:
    """Without those for other systems: a marker cannot stand in a list that `;` divides."""
    parts = [r.partition(";") for r in requirements]
    foreign = ("win32", "darwin", "Windows", "Darwin", "extra")
    return [r.strip() for r, _, marker in parts if not any(word in marker for word in foreign)]


def write(folder: Path, name: str, version: str, requires: Iterable[str]) -> Path:
    """Write a wheel without content, which has only its metadata."""
    plain = name.replace("-", "_")
    info, path = f"{plain}-{version}.dist-info", folder / f"{plain}-{version}-py3-none-any.whl"
    needs = "".join(f"Requires-Dist: {r}\n" for r in requires)
    texts = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hpctrain\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in texts.items():
            archive.writestr(file, text)
    return path


def _fetched(source: Source, places: Places, spec: PackagesSpec) -> SourceArchive:
    from hpctrain_job import sdist  # what speaks to an index takes long to import
    from hpctrain_job.downloads.web import Failed

    with tempfile.TemporaryDirectory(prefix="hpctrain-source-") as folder:
        try:
            return sdist.fetch(source.name, source.version, Path(folder), places, say=lambda _: None)
        except sdist.NotThere as error:
            raise ConfigError.of(
                "no-source",
                str(error),
                where="environment.compile",
                hint="a version that is only a tag: { name, git, rev }",
            ) from None
        except Failed as error:
            raise index_failures.why("the index", spec, str(error)) from None
