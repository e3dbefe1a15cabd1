"""What goes around each placed step: every layer that speaks of it, folded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hpctrain.errors import Problem
from hpctrain.model.cluster import Cluster
from hpctrain.model.frozen import frozen
from hpctrain.model.layer import Bind, EnvVar, Layer
from hpctrain.model.plan import PlannedStep
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Launch
from hpctrain.model.train import Train
from hpctrain.model.words import Loc, Word, locs_in
from hpctrain.plan import facts, queues
from hpctrain.plan.fold import At, fold
from hpctrain.plan.place import Placed
from hpctrain.plan.variables import Level

OWN = "run file"
"""The source of what the user said himself."""


@frozen(kw_only=True)
class Given:
    """What was decided before the surroundings: the training, its launch, where the assets lie."""

    run: RunSpec
    cluster: Cluster
    train: Train | None
    launch: Launch
    assets: tuple[Word, ...]
    ask: Callable[..., Any]
    """Calls a hook with run and cluster; a ConfigError it raises is collected."""

    @property
    def train_layer(self) -> Layer:
        return self.train.layer if self.train else Layer()


def surround(given: Given, placed: tuple[Placed, ...]) -> tuple[tuple[PlannedStep, ...], tuple[Problem, ...]]:
    """Fold every layer around every step, and choose the queue of those that are jobs."""
    network = given.ask("configure_network", launch=given.launch) or ()
    outside = [_layers(given, item, network) for item in placed]
    enter = Layer()
    if given.run.environment.use:
        inside = [
            at.layer
            for item, layers in zip(placed, outside, strict=True)
            if item.step.inside
            for at in layers
        ]
        enter = given.ask("enter_env", launch=given.launch, binds=_binds(given, placed, inside)) or enter
    planned: list[PlannedStep] = []
    problems: dict[Problem, None] = {}
    for item, layers in zip(placed, outside, strict=True):
        around, conflicts = fold([*layers, At(Level.ENVIRONMENT, enter)] if item.step.inside else layers)
        problems.update(dict.fromkeys(conflicts))
        planned.append(
            PlannedStep(
                step=item.step,
                here=item.place.here,
                around=around,
                queue=_queue(given, item),
                waits=item.waits,
            )
        )
    return tuple(planned), tuple(problems)


def _layers(given: Given, item: Placed, network: tuple[Layer, ...]) -> list[At]:
    """All but the environment's own, which is told what these bring."""
    step, cluster = item.step, given.cluster
    brought = given.ask("surround", step=step) or ()
    layers = [
        At(Level.CORE, facts.core_layer(step)),
        At(Level.PLACE, facts.place_layer(item.place)),
        At(Level.CLUSTER, facts.cluster_layer(cluster, step)),
        At(Level.CLUSTER, facts.network_layer(cluster, step, given.run.environment.use)),
        At(Level.STEP, step.layer),
        *(At(_level(layer), layer) for layer in brought),
    ]
    if step.trains:
        layers.append(At(Level.CORE, facts.secrets_layer(given.run)))
        layers += [At(_level(layer), layer) for layer in network]
        layers.append(At(Level.TRAINER, given.train_layer))
        if given.train is not None:
            layers.append(At(Level.CORE, facts.logs_layer(given.run, cluster, step)))
        layers.append(At(Level.RUN_FILE, _own(given.run)))
    return layers


def _own(run: RunSpec) -> Layer:
    env = tuple(
        EnvVar(name=name, value=value, why="the run file says so", source=OWN)
        for name, value in run.env.items()
    )
    return Layer(env=env, ask=dict(run.resources.ask), source=OWN)


def _level(layer: Layer) -> Level:
    return Level.SITE if layer.source.startswith("hooks:") else Level.NETWORK


def _binds(given: Given, placed: tuple[Placed, ...], layers: list[Layer]) -> tuple[Bind, ...]:
    """What must be visible inside: the roles in use, the user's own places, then what layers bring."""
    own = [Bind(source=Loc(role)) for role in sorted(_roles(given, placed, layers))]
    places = [Bind(source=a, readonly=True) for a in given.assets if isinstance(a, str) and a.startswith("/")]
    return tuple(dict.fromkeys((*own, *places, *(b for layer in layers for b in layer.binds))))


def _roles(given: Given, placed: tuple[Placed, ...], layers: list[Layer]) -> frozenset[str]:
    inside = [s.step for s in placed if s.step.inside]
    made = [step.makes.role for step in inside if step.makes is not None]
    bodies = tuple(file.body for layer in layers for file in layer.files)
    values = tuple(var.value for layer in layers for var in layer.env)
    used = locs_in((*(step.commands for step in inside), *bodies, *values, given.assets))
    return frozenset({"runs", "checkpoints", *made, *(loc.role for loc in used)})


def _queue(given: Given, item: Placed) -> str:
    if item.place.here:
        return ""
    if item.place.queue and not item.step.trains:
        return item.place.queue
    resources = given.run.resources
    time = resources.time if item.step.trains else None
    row = queues.choose(given.cluster, item.step.launch.nodes, time, resources.queue)
    return row.name if row else ""
