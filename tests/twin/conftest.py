"""The twins' own fixtures."""

from tests.twin.fixtures import accounted, own_twin, torch, twin

__all__ = ["accounted", "own_twin", "torch", "twin"]
