"""Jobs as a scheduler sees them, and the closed set of states that people see."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import attrs
from attrs import frozen

from hpctrain.model.step import After
from hpctrain.model.words import Cmd, Word


class State(enum.Enum):
    """One word for a run, a step or a job; nothing else is ever printed."""

    PLANNED = "planned"
    """Nothing was done yet."""
    BUILDING = "building"
    """A step runs here."""
    QUEUED = "queued"
    """The scheduler holds it."""
    RUNNING = "running"
    """It runs."""
    DONE = "done"
    """It ended well."""
    FAILED = "failed"
    """It ended badly."""
    CANCELLED = "cancelled"
    """Somebody ended it."""
    WAITING = "waiting"
    """It waits for `hpctrain continue`."""
    UNKNOWN = "unknown"
    """Nobody knows; never taken for done."""

    @property
    def over(self) -> bool:
        """Whether it is DONE, FAILED or CANCELLED."""
        return self in (State.DONE, State.FAILED, State.CANCELLED)


@frozen(kw_only=True)
class JobFiles:
    """What a scheduler renders for a step: files of the run directory and the command to submit it.

    `submit` is an argv whose words may hold `Var("HPC_TAG")`, `Var("HPC_AFTER")` and
    `Var("HPC_RUN")`: the same command serves `submit` and the ejected run.sh. HPC_AFTER is what the
    job waits for, `afterok:ID` and `afterany:ID` with commas; a word that holds it is left out when
    there is nothing to wait for.
    """

    files: Mapping[str, str]
    """Every file by its path in the run directory; `step_files` makes them."""
    submit: Cmd
    """The command that submits it, started in the run directory."""
    attach: tuple[Word, ...] | None = None
    """Words in front of a command that put it on the running job's first node, with the caller's terminal;
    `Var("HPC_JOB")` is the job's id. (): the job runs on this machine; None: there is no such way, and
    `hpctrain shell` says so."""
    mails: bool = False
    """Whether the job asks for the mail of `[resources] mail`; a run file that wants mail is refused else."""
    source: str = ""
    """Stamped by core: who answered."""


@frozen(kw_only=True)
class Job:
    """A rendered step that is about to be handed to the scheduler."""

    step: str
    """The step's name."""
    directory: str
    """The run directory; the command is started there."""
    name: str
    """What the job is called."""
    argv: tuple[str, ...]
    """`submit` of JobFiles with its variables filled in."""
    after: tuple[tuple[After, str], ...] = ()
    """Earlier steps with the ids of their jobs."""
    avoid: tuple[str, ...] = ()
    """Nodes that failed, which the command names; one that the scheduler no longer has may be dropped."""
    env: Mapping[str, str] = attrs.field(factory=dict)
    """Variables for the command, besides our own environment."""


@frozen(kw_only=True)
class JobState:
    """What the scheduler knows of one job. `reason` is in our words, with the scheduler's own behind."""

    id: str
    """As `submit_job` returned it."""
    state: State
    """In our words."""
    tag: str = ""
    """Ours, when the scheduler can show it; what an unclear submission is looked up by."""
    name: str = ""
    """The job's name."""
    reason: str = ""
    """Why it waits or ended."""
    exit_code: int | None = None
    """Of the job, once it is over."""
    nodes: tuple[str, ...] = ()
    """Where it runs."""
    elapsed_s: int | None = None
    """How long it has run."""
    limit_s: int | None = None
    """How long it may."""
    start: str = ""
    """When it began, or is expected to; ISO."""
    position: int | None = None
    """Its place among those that wait for the same nodes, from 1; None where it does not wait for nodes, or
    nobody may know."""
    user: str = ""
    """Whose it is; a project's cap counts those of all."""
    node_count: int = 0
    """How many nodes it holds or asks for."""
    gpus: int | None = None
    """How many GPUs in all; None where the scheduler does not count them."""
    queue_options: tuple[str, ...] = ()
    """Where it is queued, in the words that ask for it: "--partition=batch"; a queue's limit on the jobs of
    a user counts those whose words hold all of its own."""


@frozen(kw_only=True)
class Allocation:
    """Nodes that somebody holds already, seen from inside of them."""

    job: str
    """The job's id."""
    nodes: int = 1
    """How many nodes it holds."""
    cpus: int | None = None
    """How many cores of each node, where the scheduler says so; of the node with the fewest."""
    left_s: int | None = None
    """How much longer, where the scheduler says so."""
    env: Mapping[str, str] = attrs.field(factory=dict)
    """The variables by which the scheduler's own programs know the allocation; a step started in it sees
    them, and nothing else of the caller's shell."""
    source: str = ""
    """Stamped by core: who answered."""


@frozen(kw_only=True)
class Event:
    """Something that happened to a run; observers get it through `job_event`."""

    kind: str
    """submitted; done, failed or cancelled: of a job, when whoever waits for the run sees it."""
    run: str
    """The run."""
    step: str = ""
    """The step, where it is one's."""
    job: str = ""
    """The job's id."""
    state: State = State.UNKNOWN
    """What it is now."""
    at: str = ""
    """When; ISO."""
    detail: Mapping[str, str] = attrs.field(factory=dict)
    """More, by name."""


@frozen(kw_only=True)
class ChainState:
    """How far the jobs of a step have come."""

    attempts: int
    """How many have begun to train."""
    restarts: int = 0
    """How often one of them began again inside of its allocation."""
    planned: int = 1
    """How many were planned."""
    jobs: tuple[str, ...] = ()
    """Those in the queue, the one that runs included, in their order."""
    training: str = ""
    """The one whose attempt has begun and not ended."""
    submitted: int = 0
    """How many were ever handed over, refused ones too: whether somebody else has done so since."""
    left_s: float = 0.0
    """Seconds of the total that no attempt has used."""
    ended: str = ""
    """Why no further attempt will begin; empty while one may."""
    avoided: tuple[str, ...] = ()
    """Nodes that failed, and on which no further attempt shall run."""


@frozen(kw_only=True)
class Rule:
    """A known failure: `pattern` in a log means `cause`, and `fix` mends it."""

    name: str
    """A short name."""
    pattern: str
    """A regular expression over a log."""
    cause: str
    """What happened, in words."""
    fix: str
    """Text to paste."""
    sure: str = "likely"
    """certain, likely, consequence (of another rank's end) or guess: these two if nothing else is known."""
    page: str = ""
    """An address that says more."""
    source: str = ""
    """Stamped by core: who says so."""


__all__ = ["Allocation", "ChainState", "Event", "Job", "JobFiles", "JobState", "Rule", "State", "Word"]
