"""The clusters of this workspace, as if their wheels were installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clusters.workspace import installed_workspace


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The members of the workspace as if their wheels were installed."""
    with installed_workspace(tmp_path_factory.mktemp("site")):
        yield
