"""The classes that a plugin's tests subclass, one for each kind: all areas together."""

from __future__ import annotations

from hpctrain.testing.answers import AnswerChecks
from hpctrain.testing.duties import DutyChecks
from hpctrain.testing.environment import BuildChecks, EntryChecks
from hpctrain.testing.facts import FactChecks
from hpctrain.testing.golden import GoldenChecks
from hpctrain.testing.hostile import HostileChecks
from hpctrain.testing.inside import InsideChecks
from hpctrain.testing.live import LiveChecks
from hpctrain.testing.plans import ExampleChecks, PlanChecks
from hpctrain.testing.purity import PurityChecks
from hpctrain.testing.readme import ReadmeChecks
from hpctrain.testing.scheduler import RequestChecks
from hpctrain.testing.scripts import ScriptChecks
from hpctrain.testing.trainer import CommandChecks, ProgressChecks
from hpctrain.testing.training import LiveTrainingChecks
from hpctrain.testing.twice import TwiceChecks


class ClusterConformance(
    FactChecks,
    PlanChecks,
    PurityChecks,
    TwiceChecks,
    ScriptChecks,
    InsideChecks,
    HostileChecks,
    ReadmeChecks,
    GoldenChecks,
):
    """Everything that hpctrain asks of a cluster, from dated facts to scripts that cannot be broken into.

    Set `cluster`; `examples`, `golden`, `account` and `without` have defaults. No test needs the
    machine, a network or a scheduler.
    """


class EnvironmentConformance(
    BuildChecks,
    EntryChecks,
    ExampleChecks,
    PurityChecks,
    TwiceChecks,
    ScriptChecks,
    InsideChecks,
):
    """Everything that hpctrain asks of an environment: what it builds, and the way in on two nodes.

    Set `environment`, and `options` where a user must say something. Nothing is built or downloaded: the
    kit puts a stand-in where the environment's Python would be, and a stand-in for a container's engine.
    """


class SchedulerConformance(
    RequestChecks, DutyChecks, AnswerChecks, LiveChecks, PurityChecks, TwiceChecks, ScriptChecks
):
    """Everything that hpctrain asks of a scheduler: requests that leave nothing out, answers understood.

    Set `scheduler`, and `answers`: what its programs said once. With `live` real jobs are started as well.
    """


class TrainerConformance(
    ProgressChecks,
    CommandChecks,
    LiveTrainingChecks,
    ExampleChecks,
    PurityChecks,
    TwiceChecks,
    ScriptChecks,
):
    """Everything that hpctrain asks of a trainer: progress, checkpoints, resume, stop, exit codes.

    Set `trainer`, `log` and `checkpoint_names`. With `live` its program runs, is stopped and started again.
    """
