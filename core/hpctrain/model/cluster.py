"""A cluster as facts. `cluster.toml` beside the plugin is structured into these, strictly.

Every table names a `source`: the id of a `[[source]]` row with title, address and the day on which
somebody looked. A fact that nobody can date is not a fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from hpctrain.model.duration import Duration
from hpctrain.model.frozen import frozen
from hpctrain.model.step import Need


@frozen(kw_only=True)
class Source:
    """Where facts come from: `checked` is the day (ISO) on which the page was read."""

    id: str
    """What the `source` of other tables says."""
    title: str
    """What the page is called, for people."""
    checked: str
    """The day on which somebody read it: 2026-07-22."""
    url: str = ""
    """Its address; one that is official has one."""
    sure: Literal["official", "vendor", "community", "measured", "inferred"] = "official"
    """What kind of page it is."""


@frozen(kw_only=True)
class Hardware:
    """One node of the training partition."""

    source: str
    """The id of the `[[source]]` that says so."""
    gpu: str = "none"
    """What the vendor calls what the scheduler counts as one GPU."""
    gpu_kind: Literal["cuda", "rocm", "cpu"] = "cpu"
    """Decides which wheels and which runtime check."""
    gpus_per_node: int = 0
    """How many of them a node has; a run without `gpus` takes them all."""
    gpu_memory_gb: float = 0
    """Memory of one of them; the plan compares it with what training needs."""
    peak_tflops: float = 0
    """Dense bf16 peak of one schedulable GPU, the basis of every MFU."""
    cores_per_node: int = 1
    """Cores that jobs may use; ranks get no more than their share of them."""
    memory_gb: float = 0
    """Memory of a node."""
    nodes: int = 1
    """Nodes in all; a run that asks for more is refused."""


@frozen(kw_only=True)
class Place:
    """Somewhere a step can run. The first one that provides all its needs is taken."""

    name: str
    """What the plan calls it: login, compute."""
    provides: tuple[Need, ...]
    """What commands find here: network (the internet, through a proxy or not), target (the training nodes'
    architecture, system and libraries), gpu."""
    source: str
    """The id of the `[[source]]` that says so."""
    arch: str = ""
    """Its architecture (x86_64, aarch64), where it is not the cluster's."""
    here: bool = False
    """True: the node where hpctrain was started; False: a job."""
    gpus: int = 0
    """What a job holds here when its step asks for no GPU itself."""
    max_minutes: int | None = None
    """Steps that take longer do not run here."""
    queue: str = ""
    """The queue that jobs of this place use; empty: the run's own."""
    env: Mapping[str, str] = attrs.field(factory=dict)
    """Variables of every step that runs here; they end in its task.sh."""
    modules: tuple[str, ...] = ()
    """Modules of every step that runs here, written as those of `[modules]` and loaded before them: a login
    node's newer Python, say."""
    why: str = ""
    """Why `env` and `modules` are needed here (a proxy, say)."""
    ask: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Words of the scheduler, by its name: { slurm = ["--constraint=gpu"] }; they stand in the job's request
    of every step that runs here."""


@frozen(kw_only=True)
class Queue:
    """One row of the site's limits; a bin that depends on the node count is a row of its own."""

    name: str
    """What a run file calls it."""
    source: str
    """The id of the `[[source]]` that says so."""
    ask: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Scheduler words that choose it, by scheduler: {slurm = ["--partition=batch"]}."""
    min_nodes: int = 1
    """The row takes jobs of no fewer nodes."""
    max_nodes: int | None = None
    """And of no more."""
    max_gpus: int | None = None
    """The most GPUs of one job."""
    max_time: Duration | None = None
    """The longest job."""
    max_node_minutes: int | None = None
    """The most that nodes and minutes may multiply to."""
    jobs_per_user: int | None = None
    """How many jobs of one user it holds; one more is refused before it is submitted."""
    forbids: tuple[str, ...] = ()
    """multi_node: a run on several nodes is refused; chain: none is offered; production: shown."""
    sure: bool = True
    """False: a limit that only warns, because its source is weak or undated on the site."""
    auto: bool = True
    """False: only taken when the run file names it (`queue = "debug"`)."""
    note: str = ""
    """What people should know; shown."""


@frozen(kw_only=True)
class Storage:
    """What a role means here: `[storage.env]`, `[storage.runs]`. `path` may hold {user}, {account},
    {uid}, {home} and ${VARIABLE} of the login node."""

    path: str
    """Where it lies."""
    source: str
    """The id of the `[[source]]` that says so."""
    quota_gb: float | None = None
    """The site's limit of its size; shown before somebody meets it."""
    inodes: int | None = None
    """The same of the number of files; shown."""
    purge_days: int | None = None
    """After how many days without use the site deletes a file; shown."""
    stripe: str = ""
    """The site's command that prepares a folder of large files; shown, run by nobody."""
    share: Literal["me", "project"] = "me"
    """Who may read what is published here."""
    owners: tuple[str, ...] = ()
    """Users, besides yourself, whose artefacts you use from a shared role: say so in settings."""
    node_local: bool = False
    """True: it is on each node alone, so that its path is looked up in the job."""
    note: str = ""
    """What people should know; shown."""


@frozen(kw_only=True)
class Modules:
    """The site's modules around steps that need the training nodes' system."""

    source: str
    """The id of the `[[source]]` that says so."""
    build: tuple[str, ...] = ()
    """Around steps that need the target and do not train: `NAME`, `-NAME` (unload), `use:/path`, `reset`,
    `purge`; one `module` line each in job.sh."""
    run: tuple[str, ...] = ()
    """The same around training."""
    why: str = ""
    """The reason, for `plan --explain`."""


@frozen(kw_only=True)
class NetVar:
    """One variable of the training step; `nodes` says when, where "many" is two or more.

    `${NAME}` in its value is a variable of the job: `/tmp/${USER}/cache-${HPC_JOB}`.
    """

    name: str
    """The variable: NCCL_NET."""
    value: str
    """Its value; `${NAME}` is a variable of the job."""
    why: str
    """What goes wrong without it."""
    source: str
    """The id of the `[[source]]` that says so."""
    how: Literal["set", "default", "prepend", "unset"] = "set"
    """set; default (only where nothing set it, a module say); prepend (in front, with a colon); unset."""
    nodes: Literal["all", "many", "one"] = "all"
    """Runs of how many nodes get it: many is two or more."""
    at: Literal["job", "node", "task"] = "task"
    """Where it is exported: job (job.sh, once), node (node.sh and rank.sh, outside the container), task
    (task.sh, in each rank and inside)."""
    unless: tuple[str, ...] = ()
    """Environment technologies that decide it themselves (edf): inside them the row is left out."""


@frozen(kw_only=True)
class Network:
    """The fabric: variables with reasons, modules, scheduler words for jobs of several nodes."""

    source: str
    """The id of the `[[source]]` that says so."""
    fabric: Literal["tcp", "slingshot", "infiniband"] = "tcp"
    """What the nodes are joined by; shown."""
    proof: str = ""
    """A regular expression (as `grep -P` reads it) that rank 0's log shows when several nodes talk over
    the fabric; with `refuse` it is looked for in every training on two or more nodes."""
    refuse: str = ""
    """A regular expression that proves a silent fall back to a slow network: the job ends, with its line."""
    interface: str = ""
    """The device of the fast network (hsn0); for your own hooks, core reads it nowhere."""
    var: tuple[NetVar, ...] = ()
    """Variables of training, each with its reason."""
    modules: tuple[str, ...] = ()
    """Modules of training on two or more nodes, written as those of `[modules]`."""
    ask: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Words of the scheduler, by its name: { slurm = ["--constraint=gpu"] }; they stand in the job's request
    when training takes two or more nodes."""
    binds: tuple[str, ...] = ()
    """Folders that a container must see on two or more nodes: `/source` or `/source:/target`; the environment
    turns them into its own options."""


@frozen(kw_only=True)
class LaunchFacts:
    """How this site wants ranks to be started."""

    source: str
    """The id of the `[[source]]` that says so."""
    ranks: Literal["per_node", "per_gpu"] = "per_node"
    """One agent a node or one task a GPU, where the trainer leaves the choice."""
    cpus_per_gpu: int = 1
    """Cores for each GPU: `--cpus-per-task` on Slurm, times the GPUs of a rank."""
    memory_gb_per_gpu: float | None = None
    """Memory for each GPU asked for: `--mem` on Slurm, times the GPUs of a node; left out where whole nodes
    are given."""
    bind: str = ""
    """Which GPU serves which rank, in the scheduler's own word: "closest" becomes `--gpu-bind=closest` on
    Slurm."""
    visible: Literal["all", "one"] = "all"
    """all: a rank sees every GPU of its node; one: only its own, as number 0 (`--gpus-per-task=1` on Slurm).
    For one rank a GPU."""
    gpu_request: Literal["gpus-per-node", "gres", "none"] = "gpus-per-node"
    """How the site asks for GPUs: `--gpus-per-node=4`, `--gres=gpu:4`, or none, where jobs get whole nodes;
    with none neither `bind` nor `visible` has an effect."""
    interface_suffix: str = ""
    """Appended to the first node's name in HPC_HEAD (nid001 becomes nid001-hsn0), so that rendezvous uses the
    fast network."""


@frozen(kw_only=True)
class Policy:
    """The site's courtesy rules; a site file may tighten them, users cannot loosen them."""

    source: str
    """The id of the `[[source]]` that says so."""
    poll_seconds: int = 10
    """How often the scheduler may be asked, at most."""
    account: Literal["required", "optional", "none"] = "optional"
    """Whether a job must say what it is charged to."""
    max_gpus: int | None = None
    """A cap over all jobs of a project and of all its users, running or queued, where the site has one."""
    max_nodes: int | None = None
    """The same of nodes."""
    submit_env: tuple[str, ...] = ()
    """Variables of the login shell that a job needs (http_proxy, say), besides HOME, LANG, LOGNAME and USER:
    `--export` on Slurm. All others stay behind."""


@frozen(kw_only=True)
class Verify:
    """A fact that only the live site can confirm, with a command to run there by hand."""

    fact: str
    """The fact, in words."""
    command: str
    """A command to run on the live site."""
    expect: str = ""
    """A regular expression that its output shows when the fact still holds."""


@frozen(kw_only=True)
class Cluster:
    """One machine: facts, policies and the defaults that compose the technologies for it."""

    name: str
    """What users write: `cluster = "NAME"`; the entry point says the same."""
    title: str
    """What its site calls it."""
    scheduler: str
    """The plugin that speaks to it: slurm, local."""
    arch: str
    """The architecture of the training nodes: x86_64, aarch64."""
    hardware: Hardware
    launch: LaunchFacts
    network: Network
    policy: Policy
    source: tuple[Source, ...]
    place: tuple[Place, ...]
    queue: tuple[Queue, ...] = ()
    storage: Mapping[str, Storage]
    modules: Modules | None = None
    var: tuple[NetVar, ...] = ()
    """Variables of the training step that are not the network's: caches, tuning."""
    operator: str = ""
    """Who runs it."""
    detect: tuple[str, ...] = ()
    """Regular expressions for the full host name of a login node."""
    defaults: Mapping[str, Any] = attrs.field(factory=dict)
    """Run-file keys one layer below the user's: [defaults.environment] use = "conda" …"""
    facts: Mapping[str, Any] = attrs.field(factory=dict)
    """Data for this cluster's own hooks (tables of candidates, symbol names)."""
    verify: tuple[Verify, ...] = ()

    def source_of(self, ident: str) -> Source | None:
        return next((s for s in self.source if s.id == ident), None)

    def place_named(self, name: str) -> Place | None:
        return next((p for p in self.place if p.name == name), None)

    def queue_named(self, name: str) -> Queue | None:
        return next((q for q in self.queue if q.name == name), None)
