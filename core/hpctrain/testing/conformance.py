"""The class that a cluster plugin's tests subclass: all areas together."""

from __future__ import annotations

from hpctrain.testing.facts import FactChecks
from hpctrain.testing.golden import GoldenChecks
from hpctrain.testing.hostile import HostileChecks
from hpctrain.testing.plans import PlanChecks
from hpctrain.testing.purity import PurityChecks
from hpctrain.testing.readme import ReadmeChecks
from hpctrain.testing.scripts import ScriptChecks
from hpctrain.testing.twice import TwiceChecks


class ClusterConformance(
    FactChecks,
    PlanChecks,
    PurityChecks,
    TwiceChecks,
    ScriptChecks,
    HostileChecks,
    ReadmeChecks,
    GoldenChecks,
):
    """Everything that hpctrain asks of a cluster, from dated facts to scripts that cannot be broken into.

    Set `cluster`; `examples`, `golden`, `account` and `without` have defaults. No test needs the
    machine, a network or a scheduler.
    """
