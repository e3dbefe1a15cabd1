"""Apptainer's own words for the GPUs of a node and for what is bound."""

from __future__ import annotations

from hpctrain.plugin import Bind, Join, Word

GPU_FLAG = {"cuda": ("--nv",), "rocm": ("--rocm",), "xpu": (), "cpu": ()}


def option(bind: Bind) -> Word:
    """A bind as an option of its own."""
    return Join("--bind=", *spec(bind))


def spec(bind: Bind) -> tuple[Word, ...]:
    """`source:target:ro`, as much of it as is needed."""
    target = () if bind.target is None and not bind.readonly else (":", bind.target or bind.source)
    return (bind.source, *target, *((":ro",) if bind.readonly else ()))
