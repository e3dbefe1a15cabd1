"""What each hook must return, and the stamp that says who returned it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from hpctrain.errors import Problem
from hpctrain.hooks import values
from hpctrain.model.job import Allocation, JobFiles, JobState, Rule
from hpctrain.model.layer import EnvVar, File, Layer
from hpctrain.model.run import Code
from hpctrain.model.step import Launch, Pin, Step
from hpctrain.model.train import Train

MANY: dict[str, type] = {
    "pin": Pin,
    "build_env": Step,
    "prepare_data": Step,
    "convert_checkpoint": Step,
    "check_run": Problem,
    "check_config": Problem,
    "check_files": Problem,
    "check_submit": Problem,
    "query_jobs": JobState,
    "diagnose_rules": Rule,
}
"""Hooks that answer with several values of one type."""

SINGLE: dict[str, type] = {
    "checkout": Code,
    "train_command": Train,
    "launch": Launch,
    "configure_network": Layer,
    "surround": Layer,
    "enter_env": Layer,
    "render_job": JobFiles,
    "allocation": Allocation,
    "submit_job": str,
    "cancel_jobs": bool,
    "job_event": type(None),
}
"""Hooks that answer with one value."""


class WrongResult(TypeError):
    """A hook returned something else than its specification says."""


def checked(hook: str, value: Any) -> Any:
    """`value` as a tuple or a single value of the right type; None is always "no answer"."""
    if value is None:
        return None
    if hook in MANY:
        kind = MANY[hook]
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise WrongResult(f"returned {value!r}, not several {kind.__name__}")
        items = tuple(value)
        wrong = next((item for item in items if not isinstance(item, kind)), None)
        if wrong is not None:
            raise WrongResult(f"returned {type(wrong).__name__} among its answers, not {kind.__name__}")
        for item in items:
            values.check(item)
        return items
    if not isinstance(value, SINGLE[hook]):
        raise WrongResult(f"returned {type(value).__name__}, not {SINGLE[hook].__name__}")
    if isinstance(value, str) and len(value.split()) > 1:  # what the program printed
        raise WrongResult(f"returned {value!r}, not the job's id alone")
    values.check(value)
    return value


def stamped(value: Any, source: str, *, first: bool = False) -> Any:
    """A hook's answer with `source`, the plugin, on everything in it that has none yet.

    `first` marks the variables of an implementation that said `tryfirst`: they win over others.
    """
    if isinstance(value, tuple):
        return tuple(stamped(item, source, first=first) for item in value)
    if isinstance(value, EnvVar):
        return attrs.evolve(value, source=value.source or source, first=value.first or first)
    if isinstance(value, Layer):
        env, files = (stamped(part, source, first=first) for part in (value.env, value.files))
        return attrs.evolve(value, env=env, files=files, source=value.source or source)
    if isinstance(value, (Step, Train)):
        layer = stamped(value.layer, source, first=first)
        return attrs.evolve(value, layer=layer, source=value.source or source)
    if isinstance(value, (Problem, File, Launch, JobFiles, Allocation, Rule)):
        return attrs.evolve(value, source=value.source or source)
    return value
