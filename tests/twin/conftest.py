"""The twins' own fixtures."""

from tests.twin.fixtures import accounted, torch, twin

__all__ = ["accounted", "torch", "twin"]
