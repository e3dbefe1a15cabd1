"""A plain Slurm site as hpctrain sees it: all of it is data, in `cluster.toml`."""

from __future__ import annotations

HPCTRAIN_API = 1
