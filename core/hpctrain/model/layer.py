"""A Layer is what one plugin adds around a command; core folds them in a fixed order."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import attrs
from attrs import frozen

from hpctrain.model.words import Line, Word, template


class How(enum.Enum):
    """How a variable meets a value that is already there."""

    SET = "set"
    """It has this value, whatever was there."""
    DEFAULT = "default"
    """Only where nothing set it: a site module that did so wins."""
    PREPEND = "prepend"
    """In front of what is there, with a colon; several add up."""
    UNSET = "unset"
    """It is taken away."""


class Scope(enum.Enum):
    """Where a variable is put: once in the job, once on each node, or in each rank."""

    JOB = "job"
    """job.sh."""
    NODE = "node"
    """node.sh and rank.sh: outside a container."""
    TASK = "task"
    """task.sh: inside."""


@frozen(kw_only=True)
class EnvVar:
    """One variable with its reason: a line `export NAME=VALUE  # who: why`."""

    name: str
    """The variable."""
    value: Word = ""
    """A word; a Secret only here."""
    how: How = How.SET
    """SET, DEFAULT, PREPEND or UNSET."""
    at: Scope = Scope.TASK
    """JOB: job.sh; NODE: node.sh and rank.sh; TASK: task.sh."""
    why: str
    """What goes wrong without it; the comment behind the line."""
    source: str = ""
    """Stamped by core: who set it."""
    fact: str = ""
    """The id of the cluster's `[[source]]` that says so."""
    first: bool = False
    """It wins over another SET of the same rank; stamped where the hook says tryfirst."""


@frozen
class Module:
    """A line of the site's module system: `Module("rocm/6.1.3")`, `Module("x", "unload")`."""

    name: str
    """As `module load` knows it."""
    action: str = "load"
    """load, unload, use, reset or purge."""

    ACTIONS = ("load", "unload", "use", "reset", "purge")

    @classmethod
    def parse(cls, text: str) -> Module:
        """`name`, `-name` (unload), `use:/path`, `reset` or `purge`, as facts write them."""
        if text in ("reset", "purge"):
            return cls("", text)
        if text.startswith("-"):
            return cls(text[1:], "unload")
        if text.startswith("use:"):
            return cls(text[4:], "use")
        return cls(text)


@frozen(kw_only=True)
class Bind:
    """A folder that must be visible inside a container, by default at its own path."""

    source: Word
    """The folder outside."""
    target: Word | None = None
    """Where it is seen inside, if not at its own path."""
    readonly: bool = False
    """It cannot be written to inside."""

    @classmethod
    def parse(cls, text: str) -> Bind:
        """`/source` or `/source:/target`, as facts write them; `${NAME}` is a variable of the job."""
        source, colon, target = text.partition(":")
        return cls(source=template(source), target=template(target) if colon else None)


class Quote(enum.Enum):
    """How the words of a generated file are quoted."""

    NONE = "none"
    """As they are."""
    JSON = "json"
    """As a JSON string."""
    TOML = "toml"
    """As a TOML string."""
    YAML = "yaml"
    """As a YAML string."""
    ENV = "env"
    """As they are: a file of NAME=value."""


@frozen(kw_only=True)
class File:
    """A file written beside the step's scripts; `body` are words, so that it can hold a Loc."""

    path: str
    """Below `steps/<step>/`."""
    body: tuple[Word, ...]
    """Its lines, as words; a Loc becomes the path on this cluster."""
    quote: Quote = Quote.NONE
    """How each word is quoted in it; NONE: as it is."""
    source: str = ""
    """Stamped by core: who brings it."""


SchedulerWords = Mapping[str, tuple[Word, ...]]


@frozen(kw_only=True)
class Layer:
    """Everything a plugin may put around a command; core folds those of all plugins in a fixed order."""

    env: tuple[EnvVar, ...] = ()
    """Variables with their reasons: `export` lines of job.sh, node.sh, rank.sh or task.sh."""
    modules: tuple[Module, ...] = ()
    """`module` lines of job.sh, before its variables."""
    binds: tuple[Bind, ...] = ()
    """Folders a container must see; `enter_env` gets them all and writes its own options."""
    job: tuple[Line, ...] = ()
    """Lines of job.sh, once, before ranks start."""
    node: tuple[Line, ...] = ()
    """Lines of node.sh, once on each node, outside the environment."""
    task: tuple[Line, ...] = ()
    """Lines of task.sh, in each rank, inside the environment, before its commands."""
    wrap: tuple[Word, ...] = ()
    """Words in front of `bash task.sh` in rank.sh: a container's exec."""
    files: tuple[File, ...] = ()
    """Files in `steps/<step>/`, beside the scripts."""
    ask: SchedulerWords = attrs.field(factory=dict)
    """Words for the job's request, by scheduler: {"slurm": ("--constraint=gpu",)}."""
    starter: SchedulerWords = attrs.field(factory=dict)
    """Words for the command that starts the ranks, by scheduler."""
    source: str = ""
    """Stamped by core: who answered."""
