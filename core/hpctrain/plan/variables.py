"""Which value of a variable is in force when several layers speak of it."""

from __future__ import annotations

import enum
from collections.abc import Iterable

import attrs
from attrs import frozen

from hpctrain.errors import Problem
from hpctrain.model.layer import EnvVar, How


class Level(enum.IntEnum):
    """The fixed order in which layers are folded; facts yield to hooks, the user has the last word."""

    CORE = 0
    """What core gives: the steps' own variables; to training also tokens and where its logs lie."""
    PLACE = 1
    """Facts of the place where the step runs."""
    CLUSTER = 2
    """Facts of the machine, the site's file among them: modules, variables, the network's tables."""
    PLUGINS = 3
    """What plugins answer to `configure_network` and `surround`."""
    ENVIRONMENT = 4
    """How the environment is entered: the answer to `enter_env`."""
    TRAINER = 5
    """The layer of the training, from `train_command`."""
    STEP = 6
    """The layer that a step brings itself."""
    SITE = 7
    """What hooks of the site and of the run answer to `configure_network` and `surround`."""
    RUN_FILE = 8
    """`[env]` and `[resources] ask` of the run file."""

    @property
    def is_fact(self) -> bool:
        return self <= Level.CLUSTER


@frozen
class LeveledVariable:
    """A variable with the level of the layer that sets it."""

    level: Level
    var: EnvVar


@frozen
class Decided:
    """What is in force, what lost, and what is wrong."""

    env: tuple[EnvVar, ...]
    lost: tuple[EnvVar, ...]
    problems: tuple[Problem, ...]


def decide(leveled: Iterable[LeveledVariable]) -> Decided:
    """Fold the variables of all layers name by name, in a stable order."""
    by_name: dict[str, list[LeveledVariable]] = {}
    for item in leveled:
        by_name.setdefault(item.var.name, []).append(item)
    env: list[EnvVar] = []
    lost: list[EnvVar] = []
    problems: list[Problem] = []
    for name, items in by_name.items():
        base, losers, problem = _base(name, [item for item in items if item.var.how is not How.PREPEND])
        prepends = [item.var for item in items if item.var.how is How.PREPEND]
        env += [*([base] if base else []), *prepends]
        lost += losers
        problems += [problem] if problem else []
    return Decided(tuple(env), tuple(lost), tuple(problems))


def _base(name: str, items: list[LeveledVariable]) -> tuple[EnvVar | None, list[EnvVar], Problem | None]:
    if not items:
        return None, [], None
    firm = [item for item in items if item.var.how is not How.DEFAULT]
    strongest, problem = (_strongest(name, firm)) if firm else (items[-1], None)
    winner = strongest.var
    if strongest.level is Level.RUN_FILE and len(items) > 1:
        winner = attrs.evolve(winner, at=items[-2].var.at)
    losers = [item.var for item in items if item is not strongest and not _same_effect(item.var, winner)]
    return winner, losers, problem


def _strongest(name: str, firm: list[LeveledVariable]) -> tuple[LeveledVariable, Problem | None]:
    last = firm[-1]
    if last.level is Level.RUN_FILE:
        return last, None
    firsts = [item for item in firm if item.var.first]
    if firsts:
        return firsts[-1], None
    peers = [item for item in firm if not item.level.is_fact] or firm[-1:]
    if all(_same_effect(item.var, peers[-1].var) for item in peers):
        return peers[-1], None
    return peers[-1], _conflict(name, [item.var for item in peers])


def _same_effect(left: EnvVar, right: EnvVar) -> bool:
    return left.how is right.how and left.value == right.value


def _conflict(name: str, peers: list[EnvVar]) -> Problem:
    values = [p.value if isinstance(p.value, str) else repr(p.value) for p in peers]
    width = max(map(len, values)) + 2
    return Problem(
        code="conflict",
        message=f"{name} is set to {len(set(values))} values by {len(peers)} plugins",
        where=f"env.{name}",
        notes=tuple(
            f"{chr(34) + v + chr(34):<{width}}   {p.source}" for v, p in zip(values, peers, strict=True)
        ),
        hint=f'decide in the run file:  [env] {name} = "{values[-1]}"',
    )
