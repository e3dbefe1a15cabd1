"""A run as the user described it, complete after loading."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

import attrs
from attrs import frozen
from attrs.validators import ge, optional

from hpctrain.model.duration import Duration

BY_CORE = {"file": False}
"""Metadata of a field that core fills in: not a legal key of any file."""
WHEN_SET = {"identity": "when set"}
"""Metadata of a field that counts in a plan's digest only where it is set: older plans keep theirs."""
ONCE = "once"
"""Metadata of a field without a value: the default that it once had still counts in a plan's digest."""

# What pip reads, as text: a run file without packages compiles none of it.
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_EXTRAS = rf"\[\s*(?:{_NAME}\s*(?:,\s*{_NAME}\s*)*)?\]"
_CLAUSE = r"(?:(?:[=!~]=|[<>]=?)\s*v?\d[\w.*+!-]*|===\s*[\w.*+!-]+)"
_CLAUSES = rf"{_CLAUSE}(?:\s*,\s*{_CLAUSE})*"
_ADDRESS = r"@\s*[\w+.-]+:\S+"
_FRONT = rf"\s*({_NAME})\s*(?:{_EXTRAS}\s*)?(?:{_CLAUSES}|\(\s*{_CLAUSES}\s*\)|{_ADDRESS})?\s*"
_SIDE = r"""(?:\w+|'[^']*'|"[^"]*")"""
_TEST = rf"[\s(]*{_SIDE}\s*(?:[=!~]=|===|[<>]=?|\b(?:not\s+)?in\b)\s*{_SIDE}[\s)]*"
_MARKER = rf"{_TEST}(?:\b(?:and|or)\b{_TEST})*"
_SLIPS = (("=>", ">="), ("=<", "<="), (r"(?<![=<>!~])=(?!=)|\s*@\s*(?=\d)|(?<=\w)\s+(?=\d)", "=="))


def _required(text: str) -> str:
    """The name in a requirement that pip would read to its end, or nothing."""
    name, _, version = text.partition("==")
    if _plain(name) and (not version or (version[0].isdigit() and _plain(version))) and text[-1] != "=":
        return name  # as most are; the expressions take their time to compile
    front, semicolon, marker = text.partition(";")
    match = re.fullmatch(_FRONT, front)
    return match[1] if match and (not semicolon or re.fullmatch(_MARKER, marker)) else ""


def _plain(text: str) -> bool:
    """Letters and digits, and between them the three marks of a name."""
    ends = text[:1] + text[-1:]
    inner = text.translate({ord(mark): None for mark in "._-"})
    return ends.isalnum() and inner.isalnum() and text.isascii()


def _correction(text: str) -> str:
    """The requirement that a usual slip stands for, in quotes: `torch=2.9.0`, `torch@2.9.0`, `trl[peft`."""
    for slip, right in _SLIPS:
        text = re.sub(slip, right, text)
    text += "]" if text.count("[") > text.count("]") else ""
    return f'"{text}"' if _required(text) and '"' not in text else ""


@frozen(kw_only=True)
class Resources:
    """What to ask for: `nodes`, or `gpus` from which the nodes follow."""

    nodes: int | None = attrs.field(default=None, validator=optional(ge(1)))
    """Whole nodes."""
    gpus: int | None = attrs.field(default=None, validator=optional(ge(1)))
    """GPUs in all, the same number on every node."""
    time: Duration | None = None
    """How long the training job may take: "90m", "1:30:00", "2d"."""
    total: Duration | None = attrs.field(default=None, metadata=WHEN_SET)
    """How long the training may take in all, where that is more than one job may: "10d". Jobs of `time`
    (without it: of the queue's longest) follow each other, each from the newest checkpoint before it."""
    requeue: bool | None = attrs.field(default=None, metadata=WHEN_SET)
    """Of a training longer than one job: true: one job, which has itself queued again under its id, where the
    site wants that (Slurm); false: several jobs, each behind the one before."""
    on_hang: Literal["say", "stop", "off"] | None = attrs.field(default=None, metadata=WHEN_SET)
    """When a training hangs: "say" which rank and node is to blame, as without this key; "stop" it too, so
    that the next job of `total` goes on without that node; "off": nobody watches."""
    on_slow_network: Literal["stop", "say", "off"] | None = attrs.field(default=None, metadata=WHEN_SET)
    """When a node of a training on several does not talk over the fast network: "stop" the job with the line
    of its log, as without this key; "say" it and go on; "off": nobody looks."""
    vet: bool | None = attrs.field(default=None, metadata=WHEN_SET)
    """Measure each node before a training on several nodes begins; name the unfit ones and leave them out
    (Slurm). Default: from `[launch] vet_nodes` nodes on."""
    spare_nodes: int | None = attrs.field(default=None, validator=optional(ge(1)), metadata=WHEN_SET)
    """Extra nodes on which nothing trains. When a node dies or falls silent, the training goes on in the same
    job without waiting in the queue (Slurm)."""
    queue: str = ""
    """A queue of the cluster by name; empty: the first that takes the job."""
    account: str = ""
    """What jobs are charged to; as a rule in settings, because it is yours."""
    memory_gb: int | None = attrs.field(default=None, validator=optional(ge(1)))
    """Memory of each node, where less or more than the cluster's share is wanted."""
    mail: str = ""
    """Where the scheduler sends mail when a training job begins, ends or fails: "ada@example.org". Refused on
    a cluster whose scheduler sends none."""
    notify: tuple[str, ...] = ()
    """A program of yours that each training job starts at its end, with its words: ["/home/me/bin/tell-me"].
    It has half a minute, and finds what happened in HPC_EVENT (done, saved, failed), HPC_CODE, HPC_RUN."""
    ask: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Words passed to the scheduler as they are: {slurm = ["--reservation=x"]}."""

    @property
    def is_chain(self) -> bool:
        """Whether several jobs, one after the other, train."""
        return self.total is not None and self.time is not None and self.total > self.time


@frozen(kw_only=True)
class Package:
    """One package: a requirement, or your own code by path or git."""

    name: str = ""
    """What it is called; of `path` and `git` only where the folder's name is another."""
    requirement: str = ""
    """As pip writes them: "trl==0.23.1"; a bare string is this."""
    path: str = ""
    """Your own code, beside the run file; the key names its content."""
    git: str = ""
    """Your own code, from a repository."""
    rev: str = ""
    """Branch, tag or commit of `git`; pinned by lock."""
    sha256: str = attrs.field(default="", metadata=BY_CORE)
    """Content of `path`, filled in when the run file is loaded."""

    @classmethod
    def parse(cls, text: str) -> Package:
        """Read a requirement as pip writes them; a ValueError also has what was meant, to paste."""
        name = _required(text)
        if not name:
            raise ValueError('a package such as "trl==0.23.1" is needed', _correction(text))
        return cls(name=name, requirement=text)


@frozen(kw_only=True)
class Stack:
    """Packages that a trainer was seen to work with; its module's `STACKS` maps a month to one."""

    packages: tuple[str, ...]
    """Requirements that are installed from wheels."""
    compile: tuple[str, ...] = ()
    """Requirements that are built on the target, where the run file does not say `compile` itself."""


@frozen(kw_only=True)
class Environment:
    """What the training code is run with. The keys here mean the same for every technology; the
    technology's own keys stand in a table of its name (`[environment.venv]`)."""

    use: str = ""
    """The technology: venv, uv, conda, apptainer, edf or ready; empty: the cluster's own."""
    python: str = ""
    """Its Python: "3.11"."""
    stack: str = ""
    """The packages that the trainer was seen to work with, by the month: "2026-11". `packages` adds to them,
    and replaces those of the same name; `compile` replaces what is built."""
    packages: tuple[Package, ...] = ()
    """What is installed, or checked where it is ready."""
    compile: tuple[Package, ...] = ()
    """Packages built from source on the target."""
    requirements: str = ""
    """A file with one requirement a line, beside the run file."""
    options: Any = attrs.field(default=None, metadata=BY_CORE)


@frozen(kw_only=True)
class Asset:
    """A model, tokenizer or dataset; one of hub, url, git, path, command or use is its origin."""

    hub: str = attrs.field(default="", metadata={"also": ("repo", "repo_id", "huggingface", "hf")})
    """A repository of the model hub: org/name."""
    url: str = ""
    """An address; `sha256` pins it."""
    git: str = ""
    """A git repository."""
    path: str = ""
    """Relative: beside the run file, hashed by content; absolute: a place on the cluster."""
    command: tuple[str, ...] = ()
    """Run inside the environment; writes to the path in $WORK."""
    kind: Literal["", "model", "dataset", "file"] = ""
    """model, dataset or file; guessed from the asset's name when empty."""
    revision: str = ""
    """Branch, tag or commit on the hub; pinned by lock."""
    rev: str = ""
    """The same of `git`."""
    subset: str = ""
    """A configuration of a dataset."""
    split: str = ""
    """A split of a dataset."""
    sha256: str = ""
    """Of a `url` or `path`: what its content must be; filled in for a relative `path`."""
    files: tuple[str, ...] = ()
    """Patterns of a hub snapshot to take; empty: all that training needs."""
    inputs: tuple[str, ...] = ()
    """Files that `command` reads; their content is part of the key."""
    use: str = ""
    """The data plugin that makes it from assets named before: tokens."""
    options: Mapping[str, Any] = attrs.field(factory=dict)
    """What that plugin is told; its own command's options, without dashes."""


@frozen(kw_only=True)
class Code:
    """Your own training code, brought once for all runs; each run trains in a copy of its own."""

    git: str = ""
    """A repository; it is cloned where the network is."""
    rev: str = ""
    """Branch, tag or commit; pinned by lock."""
    path: str = ""
    """A folder beside the run file, or from / on the cluster; each run copies all of it, so keep data out."""
    sha256: str = attrs.field(default="", metadata=BY_CORE)
    """What the folder holds; core counts it."""


@frozen(kw_only=True)
class TrainSpec:
    """Which trainer runs; its own keys stand in a table of its name (`[train.trl]`)."""

    use: str = ""
    """The trainer: trl, command, nanotron, neox or automodel."""
    global_batch_size: int | None = attrs.field(default=None, validator=optional(ge(1)), metadata=WHEN_SET)
    """Rows of one step of all GPUs together: the same experiment on every machine. The trainer's own size of
    a pass stays the most that one GPU takes at a time, and the number of passes follows."""
    options: Any = attrs.field(default=None, metadata=BY_CORE)


@frozen(kw_only=True)
class Checkpoint:
    """How often checkpoints are written, how many are kept, what the last one becomes."""

    every: Duration | None = None
    """Time between two checkpoints: "30m"."""
    keep: int | None = attrs.field(default=None, validator=optional(ge(1)), metadata={ONCE: 3})
    """How many stay that can be trusted, and all that is newer. Without it: 3 with `trl`, with other trainers
    what their own configuration says."""
    export: str = ""
    """The format that the last one becomes, where a plugin converts it."""
    start: str = ""
    """Where the first attempt starts: "/a/path/on/the/cluster", "{assets.NAME}", or another run's folder,
    "{checkpoints.NAME/3-4f1c9a2e}". Every later attempt goes on from the run's own newest checkpoint."""
    resume: str = "auto"
    """auto: from the newest whole checkpoint of the run; never; or a checkpoint for the first attempt."""


@frozen(kw_only=True)
class Hooks:
    """Site code for this run: an explicit file, never found by itself."""

    file: str = ""
    """A Python file beside the run file."""
    only: tuple[str, ...] = ()
    """Distributions whose plugins may take part: ["hpctrain-plugins", "hpctrain-alps"]; empty: all installed.
    One that is not listed is refused before its code is imported."""


@frozen(kw_only=True)
class RunSpec:
    """The run file after all layers were folded and every table was structured."""

    name: str
    """What the run is called; its number is appended."""
    cluster: str
    """Where it runs; `--on` wins. Without it: the cluster whose login node this is."""
    resources: Resources = attrs.field(factory=Resources)
    environment: Environment = attrs.field(factory=Environment)
    assets: Mapping[str, Asset] = attrs.field(factory=dict)
    code: Code | None = None
    train: TrainSpec = attrs.field(factory=TrainSpec)
    checkpoint: Checkpoint = attrs.field(factory=Checkpoint)
    env: Mapping[str, str] = attrs.field(factory=dict)
    """Variables of the training's tasks; they win over all plugins."""
    secrets: tuple[str, ...] = ()
    """Names of tokens the run needs: "huggingface", "wandb" or one of `[secrets]` in settings. Training finds
    them in HF_TOKEN, WANDB_API_KEY, or the name in capitals."""
    hooks: Hooks = attrs.field(factory=Hooks)
    inputs: Mapping[str, str] = attrs.field(factory=dict, metadata=BY_CORE)
    """Files the run file names, with the hash of their content, filled in by load."""
    texts: Mapping[str, str] = attrs.field(factory=dict, metadata=BY_CORE)
    """Those of `inputs` that pure hooks read (requirements, a trainer's YAML), as text."""


@frozen
class Origin:
    """Where a value came from: the layer's name and, for a file, its line.

    Looking a line up costs time, so `seek` does it only when `at` or `label` is asked for.
    """

    layer: str
    file: str = ""
    line: int = 0
    seek: Callable[[], int] | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def at(self) -> int:
        """The line, 0 when there is none."""
        return self.line or (self.seek() if self.seek else 0)

    @property
    def label(self) -> str:
        """`run.toml:12`, or the layer when it is no file."""
        if not self.file:
            return self.layer
        short = self.file.rsplit("/", 1)[-1]
        line = self.at
        return f"{short}:{line}" if line else short
