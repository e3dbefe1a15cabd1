"""The fabric of a cluster as facts, and variables of training with their reasons."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import attrs
from attrs import frozen

PARTS = ("plugin", "libfabric", "nccl", "rccl", "rocm", "cuda", "driver")
"""What a network stack has versions of."""
SPAN = re.compile(r"(?:(?:<=|>=|<|>|)\d+(?:\.\d+)*)(?:,(?:<=|>=|<|>|)\d+(?:\.\d+)*)*")
"""A version, or a range of versions."""


@frozen(kw_only=True)
class TrainingVar:
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
class Precedent:
    """A stack of network libraries and settings of training that somebody saw work, or go wrong.

    A row is met where all that it names holds. hpctrain has rows of any machine; a row of a cluster takes the
    place of the one with its name.
    """

    name: str
    """Its own; the message of a plan names it."""
    verdict: Literal["good", "warned", "refused"]
    """good: known to work, so nothing is said; warned: a plan shows it; refused: nothing is submitted."""
    effect: str
    """What happens then: the symptom, or how well it went."""
    source: str
    """The id of the `[[source]]` that says so."""
    cure: str = ""
    """What to write, or what to load, instead."""
    stack: Mapping[str, str] = attrs.field(factory=dict)
    """Versions by part, as `[network.stack]` names them: { plugin = "<1.14", libfabric = "1.22" }. "1.22" is
    every 1.22.x; with <, <=, >, >= a range, several joined by commas. One that nobody knows is not met."""
    var: Mapping[str, str] = attrs.field(factory=dict)
    """Variables of training, each with a regular expression for its whole value; not set is as empty."""
    fabric: str = ""
    """The fabric it was seen on; empty: any."""
    gpu: str = ""
    """A regular expression that the name of the GPU holds: GH200."""
    nodes: Literal["many", "one"] = "many"
    """Training of how many nodes: many is two or more."""
    traffic: Literal["any", "all-to-all"] = "any"
    """all-to-all: training with experts on several nodes."""
    unasked: str = ""
    """A word without which the scheduler is asked: disable_rdzv_get."""


@frozen(kw_only=True)
class Network:
    """The fabric: variables with reasons, modules, scheduler words for jobs of several nodes."""

    source: str
    """The id of the `[[source]]` that says so."""
    fabric: Literal["tcp", "slingshot", "infiniband"] = "tcp"
    """What the nodes are joined by; shown."""
    proof: str = ""
    """A regular expression, of Python, that the log of each node's first rank shows when several nodes talk
    over the fabric; with `refuse` it is looked for in every training on two or more nodes."""
    refuse: str = ""
    """A regular expression that proves a silent fall back to a slow network: the job ends, with its line, or
    says so: `[resources] on_slow_network`."""
    interface: str = ""
    """The device of the fast network (hsn0); for your own hooks, core reads it nowhere."""
    var: tuple[TrainingVar, ...] = ()
    """Variables of training, each with its reason."""
    modules: tuple[str, ...] = ()
    """Modules of training on two or more nodes, written as those of `[modules]`."""
    ask: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Words of the scheduler, by its name: { slurm = ["--constraint=gpu"] }; they stand in the job's request
    when training takes two or more nodes."""
    binds: tuple[str, ...] = ()
    """Folders that a container must see on two or more nodes: `/source` or `/source:/target`; the environment
    turns them into its own options."""
    stack: Mapping[str, str] = attrs.field(factory=dict)
    """Versions of what training on several nodes loads: plugin (of NCCL or RCCL, for the fabric), libfabric,
    nccl, rccl, rocm, cuda, driver. By them it is known which rows of `precedent` are met."""
    precedent: tuple[Precedent, ...] = ()
    """Stacks and settings that are known to work here, or to go wrong."""
