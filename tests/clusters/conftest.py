"""The clusters of this workspace, as if their wheels were installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hpctrain.hooks.scan import installed
from tests.clusters import ROOT, read
from tests.hooks.dists import distribution


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The members of the workspace as if their wheels were installed."""
    site = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        for file in (ROOT / "plugins/pyproject.toml", *ROOT.glob("hpc_*/pyproject.toml")):
            project = read(file)["project"]
            distribution(site, project["name"], project["version"], project["entry-points"], {})
            patch.syspath_prepend(str(file.parent))
        patch.syspath_prepend(str(site))
        installed.cache_clear()
        yield
    installed.cache_clear()
