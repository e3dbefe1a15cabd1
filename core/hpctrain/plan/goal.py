"""The part of a run that a command does: some of its steps, or a step that takes the place of training."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import attrs
from attrs import frozen

from hpctrain.errors import Problem
from hpctrain.model.run import Asset, Resources, RunSpec
from hpctrain.model.step import Step
from hpctrain.model.words import Word

_KEY = r'(?:\[resources\]\n)?(\w+) = "?([^" ]*)"?(?: .*)?\Z'
"""The hint of a limit, as a run file writes it."""

Assets = Mapping[str, Word]
"""Where each asset lies, by its name."""


@frozen(kw_only=True)
class Goal:
    """The part of a run that a command does; without one, all of it.

    The steps are the run's own, planned by the same hooks, so that what one command makes another
    finds. Its directory is a run of the name `RUN-GOAL`, beside those that train.
    """

    name: str
    """Appended to the run's name."""
    env: bool = True
    """Whether the environment's steps are part of it; those that a chosen asset needs are in any case."""
    assets: Callable[[str], bool] = lambda _: False
    """Which assets are brought."""
    brings: Mapping[str, Asset] = attrs.field(factory=dict)
    """Assets besides those of the run file."""
    step: Callable[[Assets], Step] | None = None
    """The step in place of training; it gets all that training gets: network, tokens, `[env]`."""
    resources: Resources | None = None
    """What that step asks for, instead of what training does."""

    def of(self, run: RunSpec) -> RunSpec:
        """The run under the goal's name, with what the goal brings."""
        return attrs.evolve(
            run,
            name=f"{run.name}-{self.name}",
            assets={**run.assets, **self.brings},
            resources=self.resources or run.resources,
        )

    def reworded(self, problem: Problem) -> Problem:
        """A problem of the goal's resources, in the words of the command line that asked for them."""
        table, _, key = problem.where.partition(".")
        if self.resources is None or table != "resources":
            return problem
        hint = re.sub(_KEY, r"--\1 \2", problem.hint)
        return attrs.evolve(problem, where=f"--{key}", span=None, hint=hint)


BUILD = Goal(name="build")
STAGE = Goal(name="stage", env=False, assets=lambda _: True)
EXEC, SHELL, TUNNEL, DOCTOR = "exec", "shell", "tunnel", "doctor"
NAMES = (BUILD.name, STAGE.name, EXEC, SHELL, TUNNEL, DOCTOR)
"""What follows the name of a run in the names of its parts."""
