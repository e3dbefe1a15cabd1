"""A cluster as facts. `cluster.toml` beside the plugin is structured into these, strictly.

Every table names a `source`: the id of a `[[source]]` row with title, address and the day on which
somebody looked. A fact that nobody can date is not a fact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import attrs
from attrs import frozen

from hpctrain.model.duration import Duration
from hpctrain.model.network import Network, TrainingVar
from hpctrain.model.step import Need
from hpctrain.model.words import Word, template

VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}", re.ASCII)
"""A variable of the login node in a path."""


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
    no_url: str = ""
    """Why it has no address: nobody can look it up again."""
    sure: Literal["official", "vendor", "community", "measured", "inferred"] = "official"
    """What kind of page it is."""


@frozen(kw_only=True)
class Hardware:
    """One node of the training partition."""

    source: str
    """The id of the `[[source]]` that says so."""
    gpu: str = "none"
    """What the vendor calls what the scheduler counts as one GPU."""
    gpu_kind: Literal["cuda", "rocm", "xpu", "cpu"] = "cpu"
    """Decides which wheels and which runtime check: cuda (NVIDIA), rocm (AMD), xpu (Intel), cpu (none)."""
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
class NodeKind:
    """The nodes of a queue, where they are not those of `[hardware]`; what is left out is as there."""

    gpu: str | None = None
    """What the vendor calls one of their GPUs."""
    gpus_per_node: int | None = None
    """How many of them a node has; 0: none."""
    gpu_memory_gb: float | None = None
    """Memory of one of them."""
    peak_tflops: float | None = None
    """Dense bf16 peak of one of them."""
    cores_per_node: int | None = None
    """Cores that jobs may use."""
    memory_gb: float | None = None
    """Memory of a node."""
    nodes: int | None = None
    """Nodes of this kind in all."""

    def of(self, hardware: Hardware) -> Hardware:
        """The hardware with these nodes in place of its own."""
        changes = {name: value for name, value in attrs.asdict(self).items() if value is not None}
        return attrs.evolve(hardware, **changes)


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
    before: str = ""
    """In a site file: the place of cluster.toml in front of which this one stands, to be taken first."""
    account: str = ""
    """What jobs here are charged to, where that is not the run's account as it stands: "{project}_g"; it may
    hold {account} and {project}."""


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
    min_time: Duration | None = None
    """The shortest one that may be asked for."""
    max_node_minutes: int | None = None
    """The most that nodes and minutes may multiply to."""
    jobs_per_user: int | None = None
    """How many jobs of one user it holds; one more is refused before it is submitted."""
    jobs_per_project: int | None = None
    """How many jobs of all users of an account it holds."""
    counts: tuple[str, ...] = ()
    """What the scheduler calls the queue of a job that is in it, where that is not what `ask` says: a site
    renames `--qos=debug` to ["--qos=gpu_debug"]. Jobs with these words count against the two limits above."""
    hardware: NodeKind | None = None
    """Its nodes, where they are not those of `[hardware]`: { gpu_memory_gb = 80, nodes = 256 }."""
    forbids: tuple[Literal["multi_node", "chain", "submit", "production", "batch"], ...] = ()
    """multi_node: a run on several nodes is refused; chain: none is offered; submit: its jobs hand over no
    others; production: shown; batch: no job is submitted to it, people hold its nodes by hand
    (`hpctrain run --here`)."""
    sure: bool = True
    """False: a limit that only warns, because its source is weak or undated on the site."""
    auto: bool = True
    """False: only taken when the run file names it (`queue = "debug"`)."""
    before: str = ""
    """In a site file: the queue of cluster.toml in front of which this row stands, to be taken first."""
    note: str = ""
    """What people should know; shown."""


@frozen(kw_only=True)
class Storage:
    """What a role means here: `[storage.env]`, `[storage.runs]`. `path` may hold {user}, {account},
    {project}, {uid}, {home} and ${VARIABLE} of the login node, which jobs get too."""

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
    """Users, besides yourself, whose artifacts you use: by name, or "@group" for all of a group; {account}
    and {project} are those of the run."""
    writable: tuple[str, ...] = ()
    """The places whose steps may write here, where others see it read-only: ["login"]; empty: all of them."""
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
    unless: tuple[str, ...] = ()
    """Environment technologies whose containers bring their own (edf): steps inside them load neither these
    nor those of `[network]`."""
    why: str = ""
    """The reason, for `plan --explain`."""


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
    gpu_order: Literal["forward", "reversed"] = "forward"
    """reversed: the first ranks of a node, on its first cores, are nearest to its last GPUs, so each rank is
    shown the GPUs in that order. For `visible = "all"`."""
    gpu_request: Literal["gpus-per-node", "gres", "none"] = "gpus-per-node"
    """How the site asks for GPUs: `--gpus-per-node=4`, `--gres=gpu:4`, or none, where jobs get whole nodes;
    with none neither `bind` nor `visible` has an effect."""
    vet_nodes: int = 32
    """Trainings on this many nodes or more measure each node first; `[resources] vet` says otherwise."""
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
    project: str = ""
    """A regular expression whose one group is the project in an account, where the project's folder or its
    other accounts are called so: "(m[0-9]+)(?:_g)?" finds m1234 in m1234_g. It is {project} in paths of
    `[storage]` and in the `account` of a place; without it {project} is the account."""
    submit_env: tuple[str, ...] = ()
    """Variables of the login shell that a job needs (http_proxy, say), besides HOME, LANG, LOGNAME, USER and
    those in paths of `[storage]`: `--export` on Slurm. All others stay behind."""


@frozen(kw_only=True)
class Verify:
    """A fact that only the live site can confirm, with a command to run there; `hpctrain doctor` runs those
    that start no job."""

    fact: str
    """The fact, in words."""
    command: str
    """A command to run on the live site; ACCOUNT in it is the user's account."""
    expect: str = ""
    """A regular expression that its output shows when the fact still holds."""


@frozen(kw_only=True)
class Reference:
    """What the site itself, or somebody on this machine, measured: shown beside what a plan predicts."""

    model: str
    """The model: llama3-8b."""
    parameters: float
    """Its parameters, in billions."""
    gpus: int
    """The number of GPUs."""
    tflops: float
    """TFLOP/s per GPU, as the source counts them."""
    tokens_per_s: float | None = None
    """Tokens per second and GPU."""
    precision: str = "bf16"
    """The number format of the training."""
    source: str
    """The id of the `[[source]]` that says so."""


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
    var: tuple[TrainingVar, ...] = ()
    """Variables of the training step that are not the network's: caches, tuning."""
    operator: str = ""
    """Who runs it."""
    detect: tuple[str, ...] = ()
    """Regular expressions for the full host name of a login node."""
    defaults: Mapping[str, Any] = attrs.field(factory=dict)
    """Run-file keys one layer below the user's: [defaults.environment] use = "conda" …"""
    facts: Mapping[str, Any] = attrs.field(factory=dict)
    """Data for this cluster's own hooks (tables of candidates, symbol names)."""
    reference: tuple[Reference, ...] = ()
    """Throughputs that were measured here."""
    verify: tuple[Verify, ...] = ()

    @property
    def exported(self) -> tuple[str, ...]:
        """Variables of the login node that a job gets: those of the policy, and those that paths hold.

        A node's own storage is looked up there: its variable has another value on the login node.
        """
        paths = (storage.path for storage in self.storage.values() if not storage.node_local)
        in_paths = (name for path in paths for name in VARIABLE.findall(path))
        return tuple(dict.fromkeys((*self.policy.submit_env, *in_paths)))

    def project_of(self, account: str) -> str:
        """The project that an account belongs to, as `[policy] project` finds it; else the account."""
        match = re.fullmatch(self.policy.project, account) if self.policy.project else None
        return match[1] if match else account

    def account_at(self, place: str, account: str) -> str:
        """What a job of this place is charged to, when the run names `account`; "" where it names none."""
        facts = self.place_named(place)
        if facts is None or not facts.account or not account:
            return account
        return facts.account.replace("{project}", self.project_of(account)).replace("{account}", account)

    def owners_of(self, role: str) -> tuple[Word, ...]:
        """The users besides oneself whose artifacts of this role are used; the account is bound late."""
        facts = self.storage.get(role)
        if facts is None:
            return ()
        late = (o.replace("{account}", "${HPC_ACCOUNT}") for o in facts.owners)
        return tuple(template(o.replace("{project}", "${HPC_PROJECT}")) for o in late)

    def source_of(self, ident: str) -> Source | None:
        """The `[[source]]` of this id; None where there is none."""
        return next((s for s in self.source if s.id == ident), None)

    def place_named(self, name: str) -> Place | None:
        """The `[[place]]` of this name; None where there is none."""
        return next((p for p in self.place if p.name == name), None)

    def queue_named(self, name: str) -> Queue | None:
        """The first `[[queue]]` of this name with its words and limits; None where there is none."""
        return next((q for q in self.queue if q.name == name), None)
