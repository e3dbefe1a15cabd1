"""The plan: everything that would happen, as data that can be shown, compared and ejected."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from hpctrain.errors import Problem
from hpctrain.model.cluster import Cluster
from hpctrain.model.frozen import frozen
from hpctrain.model.job import JobState
from hpctrain.model.layer import Bind, EnvVar, File, Module
from hpctrain.model.run import Origin, RunSpec
from hpctrain.model.step import Pin, Step
from hpctrain.model.train import Train
from hpctrain.model.words import Line, Word


@frozen(kw_only=True)
class Surround:
    """The folded layers of one step: what really goes around its commands.

    `env` holds the variables in force, `lost` those that another layer overrode; the rest is as in `Layer`.
    """

    env: tuple[EnvVar, ...] = ()
    lost: tuple[EnvVar, ...] = ()
    modules: tuple[Module, ...] = ()
    binds: tuple[Bind, ...] = ()
    job: tuple[Line, ...] = ()
    node: tuple[Line, ...] = ()
    task: tuple[Line, ...] = ()
    wrap: tuple[Word, ...] = ()
    files: tuple[File, ...] = ()
    ask: Mapping[str, tuple[Word, ...]] = attrs.field(factory=dict)
    starter: Mapping[str, tuple[Word, ...]] = attrs.field(factory=dict)


@frozen(kw_only=True)
class PlannedStep:
    """A step with its place, its surroundings and, where it is a job, its queue."""

    step: Step
    here: bool
    """Whether it runs where hpctrain was started; if not, it is a job."""
    around: Surround
    """What goes around its commands: the fields of `Layer`, of all layers together; `lost` are variables
    that another layer overrode."""
    queue: str = ""
    """The queue of its job, as the cluster calls it."""
    waits: bool = False
    """A step of the login node behind a job: it waits for `hpctrain continue`."""

    @property
    def name(self) -> str:
        return self.step.name


@frozen(kw_only=True)
class Plan:
    """Pure and the same on every machine; `digest` identifies it."""

    run: RunSpec
    cluster: Cluster
    pins: tuple[Pin, ...]
    steps: tuple[PlannedStep, ...]
    """In their order; that of training is called train."""
    train: Train | None = None
    problems: tuple[Problem, ...] = ()
    digest: str = ""
    """What it would run, as one hash; the same for two people with the same run."""
    origins: Mapping[str, Origin] = attrs.field(factory=dict)
    """Key path of the run -> who said it; keys that are not there are defaults."""
    plugins: tuple[str, ...] = ()
    """`kind:name (distribution version)`, beside the plan and never in its digest."""

    def step_named(self, name: str) -> PlannedStep | None:
        return next((s for s in self.steps if s.name == name), None)


@frozen(kw_only=True)
class Binding:
    """What makes a plan personal: where the roles lie for this user, bound when it is rendered."""

    roots: Mapping[str, Word]
    user: str
    account: str = ""
    python: str = "python3"
    """The control plane's own interpreter, for steps that need the network."""


@frozen(kw_only=True)
class Survey:
    """What this machine says now; shown beside the plan and never part of it."""

    there: bool
    """False: this is not the cluster, so what exists is not known here."""
    made: Mapping[str, bool] = attrs.field(factory=dict)
    """Step name -> its artefact exists."""
    free_gb: Mapping[str, float] = attrs.field(factory=dict)
    jobs: tuple[JobState, ...] = ()
    project: tuple[JobState, ...] = ()
    """The jobs of all users of the run's account, where the site's policy has a cap over them."""
    at: str = ""
