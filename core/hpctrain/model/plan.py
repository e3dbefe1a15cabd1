"""The plan: everything that would happen, as data that can be shown, compared and ejected."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from attrs import frozen

from hpctrain.errors import Problem
from hpctrain.model.cluster import Cluster
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
        """The step's name."""
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

    def account_of(self, planned: PlannedStep) -> str:
        """What the job of this step is charged to; some sites charge jobs without GPUs to another account."""
        return self.cluster.account_at(planned.step.place, self.run.resources.account)

    def step_named(self, name: str) -> PlannedStep | None:
        """The step of this name; None where the plan has none."""
        return next((s for s in self.steps if s.name == name), None)


@frozen(kw_only=True)
class Binding:
    """What makes a plan personal: where the roles lie for this user, bound when it is rendered."""

    roots: Mapping[str, Word]
    """Role -> its folder; a word that is no plain text holds variables of the cluster."""
    user: str
    """The user's name on the cluster."""
    account: str = ""
    """The account that jobs are charged to."""
    project: str = ""
    """The project that the account belongs to."""
    python: str = "python3"
    """The control plane's own interpreter, for steps that need the network."""


@frozen(kw_only=True)
class Refusal:
    """Files that are not used, and the user whose they are: only whom `owners` names is accepted."""

    reason: str
    """What is wrong with them."""
    owner: str
    """The user."""
    role: str
    """The storage role that they lie in."""
    is_foreign: bool
    """True: accepting the owner would be enough; False: it is no matter of owners."""


@frozen(kw_only=True)
class CodeState:
    """The repository in which the run's own code lies; what of it no commit holds travels all the same."""

    commit: str
    """The commit that is checked out; empty in a repository without one."""
    changed: int
    """Files below the code's folder that are changed, new or gone since that commit."""


@frozen(kw_only=True)
class EarlierRun:
    """A run of the same plan that was started before."""

    title: str
    """Its name and number."""
    finished: bool
    """Its training ended well."""
    step: int | None
    """The step of its newest checkpoint; None without one."""
    step_s: float | None = None
    """Seconds that it took for a step of training; None where it says nothing of that."""
    save_s: float | None = None
    """Seconds from the first file of its newest checkpoint to the last; None where they do not tell."""
    between_faults_s: float | None = None
    """Seconds of training between two faults; None where it had too few to say."""


@frozen(kw_only=True)
class Survey:
    """What this machine says now; shown beside the plan and never part of it."""

    is_on_cluster: bool
    """False: this is not the cluster, so what exists is not known here."""
    artifact_exists: Mapping[str, bool] = attrs.field(factory=dict)
    """Step name -> its artifact exists, and may be used."""
    owners: Mapping[str, str] = attrs.field(factory=dict)
    """Step name -> the other user whose artifact it is: an accepted one, and as it was published."""
    refusals: Mapping[str, Refusal] = attrs.field(factory=dict)
    """Step name -> why what stands at its artifact's place is neither used nor replaced."""
    free_gb: Mapping[str, float] = attrs.field(factory=dict)
    """Storage role -> free space there."""
    jobs: tuple[JobState, ...] = ()
    """The user's own jobs, where a limit of a queue or a plugin's `check_submit` wants to know them."""
    project: tuple[JobState, ...] = ()
    """The jobs of all users of the run's account, where the site's policy has a cap over them."""
    code: CodeState | None = None
    """How `[code] path` stands, also off the cluster; None where it is in no repository."""
    avoided: Mapping[str, str] = attrs.field(factory=dict)
    """Node -> why jobs of the training stay away from it, in words."""
    bad_nodes: tuple[str, ...] = ()
    """Further nodes that failed, which are too many to leave out."""
    earlier: EarlierRun | None = None
    """The newest run of the same plan; a second submission starts anew, unless it is told to go on."""
    at: str = ""
    """When; ISO."""
