"""Everything a plugin is written with, from one place: `from hpctrain.plugin import Layer, EnvVar, hookimpl`.

These names are API: they stay where they are when the modules behind them move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpctrain.errors import ConfigError, NotReachable, PluginError, Problem, Span, SubmitError
from hpctrain.hooks.marker import hookimpl
from hpctrain.model.cluster import Cluster, Place, Queue, Storage
from hpctrain.model.duration import Duration
from hpctrain.model.job import Allocation, Event, Job, JobFiles, JobState, Rule, State
from hpctrain.model.layer import At, Bind, EnvVar, File, How, Layer, Module, Quote
from hpctrain.model.plan import Binding, Plan, PlannedStep, Survey
from hpctrain.model.run import Asset, Code, RunSpec, Stack
from hpctrain.model.step import After, Artifact, Launch, Need, Pin, Ranks, Step, When
from hpctrain.model.train import Layout, Numbers, Pattern, Train
from hpctrain.model.words import Cmd, Join, Line, Loc, Raw, Secret, Var, Word, template

if TYPE_CHECKING:
    from hpctrain.render.scripts import Shape, step_files

__all__ = [
    "After",
    "Allocation",
    "Artifact",
    "Asset",
    "At",
    "Bind",
    "Binding",
    "Cluster",
    "Cmd",
    "Code",
    "ConfigError",
    "Duration",
    "EnvVar",
    "Event",
    "File",
    "How",
    "Job",
    "JobFiles",
    "JobState",
    "Join",
    "Launch",
    "Layer",
    "Layout",
    "Line",
    "Loc",
    "Module",
    "Need",
    "NotReachable",
    "Numbers",
    "Pattern",
    "Pin",
    "Place",
    "Plan",
    "PlannedStep",
    "PluginError",
    "Problem",
    "Queue",
    "Quote",
    "Ranks",
    "Raw",
    "Rule",
    "RunSpec",
    "Secret",
    "Shape",
    "Span",
    "Stack",
    "State",
    "Step",
    "Storage",
    "SubmitError",
    "Survey",
    "Train",
    "Var",
    "When",
    "Word",
    "hookimpl",
    "step_files",
    "template",
]


def __getattr__(name: str) -> Any:
    """What only scheduler plugins use, and no plan: loaded when it is asked for."""
    if name not in ("Shape", "step_files"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hpctrain.render import scripts

    return getattr(scripts, name)
