"""One cage for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hostile.cage import Cage
from tests.hostile.place import Place


@pytest.fixture(scope="package")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("hostile"), Cage())
    yield made
    made.cage.close()
