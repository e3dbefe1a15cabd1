"""Core's own last answers to hooks; any plugin answers before them."""

PLUGINS = (
    "hpctrain.defaults.assets",
    "hpctrain.defaults.checks",
    "hpctrain.defaults.launch",
    "hpctrain.defaults.pins",
)
"""The modules that are registered first, so that everybody else is asked before them."""
