"""The pytest plugin of the kit: `pytest_plugins = ["hpctrain.testing.plugin"]` in the top conftest.py.

It is not found by itself: an entry point would load it into every pytest on a computer where
hpctrain is installed, and would rewrite all of hpctrain's modules there.
"""

from __future__ import annotations

import pytest

UPDATE = "--update-golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--update-golden` to pytest."""
    parser.addoption(
        UPDATE, action="store_true", help="write the golden files instead of comparing with them"
    )


def updates(config: pytest.Config) -> bool:
    """Whether golden files are written; never, where this plugin is not loaded."""
    return bool(config.getoption(UPDATE, default=False))
