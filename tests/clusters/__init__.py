"""Where the clusters of this workspace and their run files lie."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hpctrain.model.plan import Plan
from hpctrain.session import Session

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
HOMES = {p.parent.parent.name[4:]: p.parent for p in ROOT.glob("hpc_*/hpc_*/cluster.toml")}
EXAMPLES = sorted(ROOT.glob("hpc_*/hpc_*/examples/*.toml"))


def read(path: Path) -> dict[str, Any]:
    """A TOML file as it is."""
    found: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return found


def planned(path: Path, name: str, user: str, home: Path, *sets: str, site: str = "") -> Plan:
    """The plan of a run file on a cluster, as that user makes it."""
    environ = {"USER": user, "HOME": str(home / user)}
    if site:
        (home / "site.toml").write_text(site, encoding="utf-8")
        environ["HPCTRAIN_SITE"] = str(home / "site.toml")
    return Session(path, on=name, sets=['resources.account="project"', *sets], environ=environ).plan()
