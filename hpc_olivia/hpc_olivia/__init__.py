"""Olivia as hpctrain sees it: so far all of it is data, in `cluster.toml`."""

from __future__ import annotations

HPCTRAIN_API = 1
