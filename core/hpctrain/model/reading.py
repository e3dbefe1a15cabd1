"""Facts of a cluster as its own programs print them."""

from __future__ import annotations

from typing import Any

from attrs import frozen


@frozen(kw_only=True)
class Reading:
    """One fact that a program on the cluster printed: a key of `cluster.toml` with its value."""

    table: str
    """The table: hardware, queue; "" for the top."""
    key: str
    """Its key: gpus_per_node."""
    value: Any
    """What was read, as TOML knows it: text, number, truth value, list or table."""
    file: str
    """The name of the file with the output."""
    row: str = ""
    """Of a list such as queue: which row, by its name."""
