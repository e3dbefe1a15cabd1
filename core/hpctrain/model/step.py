"""Steps, what they make, and how their ranks are started."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import attrs
from attrs import frozen

from hpctrain.model.layer import File, Layer
from hpctrain.model.run import WHEN_SET
from hpctrain.model.words import Line, Loc, Word


class Need(enum.Enum):
    """What a step needs from the place where it runs."""

    NETWORK = "network"
    """The internet, straight or through the place's proxy."""
    TARGET = "target"
    """The architecture, operating system and libraries of the training nodes."""
    GPU = "gpu"
    """At least one GPU."""


CONFIG = "config"
"""The kind of a pin that decides nothing: the `config.json` of an asset's model, for the plan's numbers."""


@frozen
class Pin:
    """A moving name made fixed by `hpctrain lock`: a version, revision or digest."""

    name: str
    """What moves: a package, a repository."""
    kind: str
    """Which world it is of: pypi, hub, git, url."""
    value: str
    """The version, commit or digest."""


@frozen(kw_only=True)
class Artifact:
    """Something a step makes once, named by what went into it and never by how it was made.

    The step's commands write to `Var("WORK")`, a unique path that never moves; core publishes it
    under `loc` by one atomic link, first wins. `lives_at` is an absolute path where the content must
    appear to work (a prefix does not survive a move).
    """

    name: str
    """The front of its file name."""
    role: str
    """The storage role it is published in: env, assets."""
    inputs: Mapping[str, Any]
    """All that decides its content; hashed into its name. Plain data."""
    arch: str
    """The architecture it is for, hashed too; "any" for data."""
    pins: tuple[Pin, ...] = ()
    """The pins that decide its content, hashed too."""
    suffix: str = ""
    """The end of its file name: .sif."""
    folder: str = ""
    """A folder below the role."""
    separator: str = "-"
    """Between name and key."""
    lives_at: str | None = None
    """An absolute path where it must appear to work."""
    checked: bool = False
    """Compared with its manifest before it is used again, and made anew where it differs: for what is small
    and was dear to make."""

    @property
    def key(self) -> str:
        """What decides its content, as 12 hexadecimal digits."""
        pins = sorted(f"{p.kind}:{p.name}={p.value}" for p in self.pins)
        content = json.dumps([self.name, self.inputs, self.arch, pins], sort_keys=True)
        return sha256(content.encode()).hexdigest()[:12]

    @property
    def filename(self) -> str:
        """`name-key` with the suffix: what it is published as."""
        return f"{self.name}{self.separator}{self.key}{self.suffix}"

    @property
    def loc(self) -> Loc:
        """Where it is published."""
        return Loc(self.role, f"{self.folder}/{self.filename}".lstrip("/"))


class When(enum.Enum):
    """How the earlier step must have ended."""

    OK = "ok"
    """Well; else this step never starts."""
    ANY = "any"
    """Anyhow."""


@frozen
class After:
    """An earlier step that this one waits for."""

    step: str
    """The earlier step's name."""
    when: When = When.OK
    """OK: it ended well; ANY: it ended."""


class Ranks(enum.Enum):
    """How many processes the scheduler starts."""

    PER_GPU = "per_gpu"
    """One a GPU."""
    PER_NODE = "per_node"
    """One a node."""
    ONCE = "once"
    """One, on the first node."""


@frozen(kw_only=True)
class Launch:
    """How the ranks of a step are laid out; the scheduler plugin alone translates it."""

    ranks: Ranks = Ranks.ONCE
    """One a GPU, one a node, or one."""
    nodes: int = 1
    """Nodes that train; with the spare ones, `job_nodes`."""
    gpus_per_node: int = 0
    """GPUs of each node."""
    cpus_per_rank: int = 1
    """Cores of each rank."""
    memory_gb: int | None = None
    """Of each node."""
    spare_nodes: int | None = attrs.field(default=None, metadata=WHEN_SET)
    """Extra nodes of the job, without ranks until one of the others fails."""
    bind: str = ""
    """The binding of GPUs to ranks, in the scheduler's own word."""
    visible: str = "all"
    """"all": every rank sees the node's GPUs; "one": each sees only its own, as number 0."""
    prefix: tuple[Word, ...] = ()
    """Words in front of the command that starts the ranks, once, on the first node: an audit wrapper."""
    rank_prefix: tuple[Word, ...] = ()
    """Words in front of every rank, outside a container: numactl."""
    source: str = ""
    """Stamped by core: who answered."""

    @property
    def job_nodes(self) -> int:
        """How many nodes the job asks for."""
        return self.nodes + (self.spare_nodes or 0)

    @property
    def ranks_per_node(self) -> int:
        """How many ranks each node starts."""
        return max(1, self.gpus_per_node) if self.ranks is Ranks.PER_GPU else 1

    @property
    def world(self) -> int:
        """How many ranks there are in all."""
        return 1 if self.ranks is Ranks.ONCE else self.nodes * self.ranks_per_node


@frozen(kw_only=True)
class Step:
    """Commands that run together in one place and one allocation, and what they make.

    A step that needs the network runs outside the environment, with the control plane's Python.
    """

    name: str
    """Names its folder `steps/NAME/` and `logs/NAME.log`."""
    commands: tuple[Line, ...]
    """The end of task.sh, one a line; the last takes the shell's place, so that signals reach it."""
    needs: frozenset[Need] = frozenset()
    """What a place must provide: NETWORK, TARGET, GPU."""
    inside: bool = False
    """Run in the run's environment, so behind `enter_env`."""
    makes: Artifact | None = None
    """What it publishes; the commands write to `Var("WORK")`."""
    after: tuple[After, ...] = ()
    """Steps it waits for; empty: the one before it in the same answer."""
    launch: Launch = attrs.field(factory=Launch)
    """How many ranks; one process unless you say more."""
    minutes: int = 10
    """How long it may take: a job's limit, and which place takes it."""
    size_gb: float | None = None
    """How much it writes, where known; shown."""
    files: tuple[File, ...] = ()
    """Files in its folder."""
    layer: Layer = attrs.field(factory=Layer)
    """What this step alone needs around it."""
    code: tuple[str, ...] = ()
    """Importable packages that travel to the job beside `hpctrain_job`. `lib/NAME` travels aside, for a
    program that adds `job.zip/lib` to the end of its path: the environment's own copy goes before it."""
    trains: bool = False
    """The training step; core sets it."""
    place: str = ""
    """Filled in by core."""
    source: str = ""
    """Stamped by core: who answered."""


Steps = tuple[Step, ...]
