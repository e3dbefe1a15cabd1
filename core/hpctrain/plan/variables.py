"""Which value of a variable is in force when several layers speak of it."""

from __future__ import annotations

import enum
from collections.abc import Iterable

import attrs

from hpctrain.errors import Problem
from hpctrain.model.frozen import frozen
from hpctrain.model.layer import EnvVar, How


class Level(enum.IntEnum):
    """The fixed order in which layers are folded; facts yield to hooks, the user has the last word."""

    CORE = 0
    PLACE = 1
    CLUSTER = 2
    NETWORK = 3
    ENVIRONMENT = 4
    TRAINER = 5
    STEP = 6
    SITE = 7
    RUN_FILE = 8

    @property
    def is_fact(self) -> bool:
        return self <= Level.CLUSTER


@frozen
class Said:
    """A variable and the level that said it."""

    level: Level
    var: EnvVar


@frozen
class Decided:
    """What is in force, what lost, and what is wrong."""

    env: tuple[EnvVar, ...]
    lost: tuple[EnvVar, ...]
    problems: tuple[Problem, ...]


def decide(said: Iterable[Said]) -> Decided:
    """Fold all that was said, variable by variable, in a stable order."""
    by_name: dict[str, list[Said]] = {}
    for item in said:
        by_name.setdefault(item.var.name, []).append(item)
    env: list[EnvVar] = []
    lost: list[EnvVar] = []
    problems: list[Problem] = []
    for name, items in by_name.items():
        base, losers, problem = _base(name, [s for s in items if s.var.how is not How.PREPEND])
        prepends = [s.var for s in items if s.var.how is How.PREPEND]
        env += [*([base] if base else []), *prepends]
        lost += losers
        problems += [problem] if problem else []
    return Decided(tuple(env), tuple(lost), tuple(problems))


def _base(name: str, items: list[Said]) -> tuple[EnvVar | None, list[EnvVar], Problem | None]:
    if not items:
        return None, [], None
    firm = [s for s in items if s.var.how is not How.DEFAULT]
    strongest, problem = (_strongest(name, firm)) if firm else (items[-1], None)
    winner = strongest.var
    if strongest.level is Level.RUN_FILE and len(items) > 1:
        winner = attrs.evolve(winner, at=items[-2].var.at)
    losers = [s.var for s in items if s is not strongest and not _same(s.var, winner)]
    return winner, losers, problem


def _strongest(name: str, firm: list[Said]) -> tuple[Said, Problem | None]:
    last = firm[-1]
    if last.level is Level.RUN_FILE:
        return last, None
    firsts = [s for s in firm if s.var.first]
    if firsts:
        return firsts[-1], None
    peers = [s for s in firm if not s.level.is_fact] or firm[-1:]
    if all(_same(s.var, peers[-1].var) for s in peers):
        return peers[-1], None
    return peers[-1], _conflict(name, [s.var for s in peers])


def _same(one: EnvVar, other: EnvVar) -> bool:
    return one.how is other.how and one.value == other.value


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
