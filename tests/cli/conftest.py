"""A user with a home of his own for the tests of the command line."""

from __future__ import annotations

import pytest

from hpctrain.testing.plugin import updates
from tests.e2e.conftest import here

__all__ = ["here"]


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are written instead of compared."""
    return updates(request.config)
