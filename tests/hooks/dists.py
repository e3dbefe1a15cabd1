"""Fake distributions on disk: a folder with dist-info and a module, as pip would leave them."""

from __future__ import annotations

from pathlib import Path

GOOD = "HPCTRAIN_API = 1\n"


def distribution(
    site: Path, name: str, version: str, entries: dict[str, dict[str, str]], modules: dict[str, str]
) -> None:
    """Write `name` with entry points by group and modules by name."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    groups = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in rows.items())
        for group, rows in entries.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups))
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    for module, text in modules.items():
        (site / f"{module}.py").write_text(text)


def cluster(site: Path, name: str, module: str, text: str, *, dist: str = "", version: str = "0.3") -> None:
    """A distribution with one cluster plugin."""
    distribution(site, dist or f"acme-{name}", version, {"hpctrain.clusters": {name: module}}, {module: text})
