"""Polaris as somebody else's plugin: facts are in cluster.toml."""

HPCTRAIN_API = 1
