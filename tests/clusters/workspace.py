"""The clusters and technologies of this workspace, as if their wheels were installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hpctrain.hooks.scan import installed
from tests.clusters import ROOT, read
from tests.hooks.dists import distribution


@contextmanager
def installed_workspace(site: Path) -> Iterator[None]:
    """Until it is left, the scan sees the members of the workspace, with their metadata in `site`."""
    with pytest.MonkeyPatch.context() as patch:
        for file in (ROOT / "plugins/pyproject.toml", *ROOT.glob("hpc_*/pyproject.toml")):
            project = read(file)["project"]
            distribution(site, project["name"], project["version"], project["entry-points"], {})
            patch.syspath_prepend(str(file.parent))
        patch.syspath_prepend(str(site))
        installed.cache_clear()
        yield
    installed.cache_clear()
