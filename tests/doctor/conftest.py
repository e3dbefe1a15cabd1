"""A user with a home of his own."""

from tests.e2e.conftest import here

__all__ = ["here"]
