"""Pins for this computer: pip's own report, from an empty environment like the one that will be built."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from hpctrain.plugin import Pin
from hpctrain_plugins.environments.wheels import index_failures
from hpctrain_plugins.environments.wheels.packages_spec import PackagesSpec, normal
from hpctrain_plugins.environments.wheels.resolving import (
    CLEAN,
    MINUTES,
    constrained,
    elsewhere,
    later_requirements,
)
from hpctrain_plugins.environments.wheels.stubs import Stubs

if TYPE_CHECKING:
    from hpctrain.plugin import ProgramRunner


def resolved(
    spec: PackagesSpec, python: str, stubs: Stubs, folder: Path, tools: ProgramRunner
) -> Iterator[Pin]:
    """One pin per package, with the hash of the very file that pip would take."""
    site = ("--system-site-packages",) if spec.options.system_site else ()
    tools.run((python, "-m", "venv", *site, str(folder)), env=CLEAN, timeout=MINUTES * 60)
    # Up to 3.11 a new venv holds setuptools, which pip would take for there and leave unpinned.
    bare = (str(folder / "bin/python"), "-m", "pip", "uninstall", "--yes", "--quiet", "setuptools")
    tools.run(bare, env=CLEAN)
    first_places = elsewhere(spec, spec.options.first_index)
    first = _report(spec, spec.options.first, folder, tools, first_places)
    # What comes first is handed on as the very file: a version alone may match another build.
    leading = {_name(row): row for row in first if _name(row) in spec.first}
    fixed = tuple(f"{name} @ {row['download_info']['url']}" for name, row in leading.items())
    links = (f"--find-links={stubs.folder}",) if stubs.archives else ()
    rows = _report(
        spec, (*fixed, *later_requirements(spec, stubs)), folder, tools, (*elsewhere(spec), *links)
    )
    for row in ({_name(row): row for row in rows} | leading).values():
        digest = sha256_of(row["download_info"])
        value = row["metadata"]["version"] + (f" sha256:{digest}" if digest else "")
        yield Pin(_name(row), "pypi", value)


def _report(
    spec: PackagesSpec,
    requirements: tuple[str, ...],
    folder: Path,
    tools: ProgramRunner,
    places: tuple[str, ...],
) -> list[dict[str, Any]]:
    if not requirements:
        return []
    requirements_file, report_file, log = folder / "asked.txt", folder / "report.json", folder / "pip.log"
    log.unlink(missing_ok=True)
    requirements_file.write_text("\n".join(requirements) + "\n")
    done = tools.run(
        (
            *(str(folder / "bin/python"), "-m", "pip", "install", "--dry-run", "--quiet", "--no-input"),
            *("--disable-pip-version-check", *places, *constrained(spec, folder)),
            # What it could not read it says in its log alone.
            *("--log", str(log)),
            *("--report", str(report_file), "-r", str(requirements_file)),
        ),
        env=CLEAN,
        inherit=True,
        timeout=MINUTES * 60,
        ok=range(256),
    )
    if done.code:
        skipped = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
        raise index_failures.why("pip", spec, tools.scrubbed(done.err), tools.scrubbed(skipped))
    rows: list[dict[str, Any]] = json.loads(report_file.read_text())["install"]
    return rows


def sha256_of(download: dict[str, Any]) -> str:
    """The hash of what pip would install; pip before 23.1 leaves it out for a file in a folder of wheels."""
    digest: str = download.get("archive_info", {}).get("hashes", {}).get("sha256", "")
    address = urlsplit(download["url"])
    path = Path(unquote(address.path))
    if digest or address.scheme != "file" or not path.is_file():
        return digest
    computed = hashlib.sha256()
    with path.open("rb") as wheel:
        while block := wheel.read(1 << 20):
            computed.update(block)
    return computed.hexdigest()


def _name(row: dict[str, Any]) -> str:
    return normal(str(row["metadata"]["name"]))
