"""Pins for this computer: pip's own report, from an empty environment like the one that will be built."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpctrain.model.step import Pin
from hpctrain_plugins.environments.wheels.pins import CLEAN, MINUTES, elsewhere, rest, unsolved
from hpctrain_plugins.environments.wheels.stubs import Stubs
from hpctrain_plugins.environments.wheels.wants import Wants, normal

if TYPE_CHECKING:
    from hpctrain.run.tools import Tools


def resolved(wants: Wants, python: str, stubs: Stubs, folder: Path, tools: Tools) -> Iterator[Pin]:
    """One pin per package, with the hash of the very file that pip would take."""
    site = ("--system-site-packages",) if wants.options.system_site else ()
    tools.run((python, "-m", "venv", *site, str(folder)), env=CLEAN, timeout=MINUTES * 60)
    # Up to 3.11 a new venv holds setuptools, which pip would take for there and leave unpinned.
    bare = (str(folder / "bin/python"), "-m", "pip", "uninstall", "--yes", "--quiet", "setuptools")
    tools.run(bare, env=CLEAN)
    alone = elsewhere(wants, wants.options.first_index)
    first = _report(wants, wants.options.first, folder, tools, alone)
    # What comes first is handed on as the very file: a version alone may match another build.
    leading = {_name(row): row for row in first if _name(row) in wants.first}
    fixed = tuple(f"{name} @ {row['download_info']['url']}" for name, row in leading.items())
    links = (f"--find-links={stubs.folder}",) if stubs.archives else ()
    rows = _report(wants, (*fixed, *rest(wants, stubs)), folder, tools, (*elsewhere(wants), *links))
    for row in ({_name(row): row for row in rows} | leading).values():
        digest = row["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256", "")
        value = row["metadata"]["version"] + (f" sha256:{digest}" if digest else "")
        yield Pin(_name(row), "pypi", value)


def _report(
    wants: Wants, requirements: tuple[str, ...], folder: Path, tools: Tools, places: tuple[str, ...]
) -> list[dict[str, Any]]:
    if not requirements:
        return []
    asked, told = folder / "asked.txt", folder / "report.json"
    asked.write_text("\n".join(requirements) + "\n")
    done = tools.run(
        (
            *(str(folder / "bin/python"), "-m", "pip", "install", "--dry-run", "--quiet", "--no-input"),
            *("--disable-pip-version-check", *places),
            *("--report", str(told), "-r", str(asked)),
        ),
        env=CLEAN,
        inherit=True,
        timeout=MINUTES * 60,
        ok=range(256),
    )
    if done.code:
        raise unsolved(wants, done)
    rows: list[dict[str, Any]] = json.loads(told.read_text())["install"]
    return rows


def _name(row: dict[str, Any]) -> str:
    return normal(str(row["metadata"]["name"]))
