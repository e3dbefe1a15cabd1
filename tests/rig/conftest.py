"""The rig's own fixture."""

from tests.rig.fixtures import slurm

__all__ = ["slurm"]
