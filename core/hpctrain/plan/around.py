"""What goes around each placed step: every layer that speaks of it, folded."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from attrs import frozen

from hpctrain.errors import Problem
from hpctrain.model.cluster import Cluster
from hpctrain.model.layer import Bind, EnvVar, Layer
from hpctrain.model.plan import PlannedStep, Surround
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Launch, Pin, Step
from hpctrain.model.train import Train
from hpctrain.model.words import Loc, Secret, Var, Word, locs_in, words_in
from hpctrain.plan import fact_layers, queues
from hpctrain.plan.fold import LeveledLayer, fold
from hpctrain.plan.place import Placed
from hpctrain.plan.variables import Level

RUN_FILE = "run file"
"""The source of a variable that the user set."""
RUN_DIRECTORY = Bind(source=Var("HPC_RUN"))
"""By the job's own word: an ejected run lies wherever somebody put it, outside of every storage role."""
TOKENS_FOLDER = Bind(source=Var("HPC_SECRETS"), readonly=True)
"""The tokens of one step; never the whole of the role `state`."""
WayIn = Callable[[tuple[Bind, ...]], LeveledLayer]


@frozen(kw_only=True)
class Decisions:
    """What was decided before the surroundings: the training, its launch, where the assets lie."""

    run: RunSpec
    cluster: Cluster
    pins: tuple[Pin, ...]
    train: Train | None
    launch: Launch
    assets: tuple[Word, ...]
    """Where each asset lies."""
    code: Word | None
    """What a run copies as its own code: the user's or the trainer's, or a build of it."""
    ask: Callable[..., Any]
    """Calls a hook with run and cluster; a ConfigError it raises is collected."""

    @property
    def train_layer(self) -> Layer:
        return self.train.layer if self.train else Layer()


def surround(
    decisions: Decisions, placed: tuple[Placed, ...]
) -> tuple[tuple[PlannedStep, ...], tuple[Problem, ...]]:
    """Fold every layer around every step, and choose the queue of those that are jobs."""
    network = decisions.ask("configure_network", launch=decisions.launch) or ()
    layers_of = [(item, _layers(decisions, item, network)) for item in placed]
    enter = _way_in(decisions)
    made_inside = frozenset(i.step.makes.role for i in placed if i.step.inside and i.step.makes)
    planned: list[PlannedStep] = []
    problems: dict[Problem, None] = {}
    for item, layers in layers_of:
        if item.step.inside:
            binds = _binds(decisions, item.step, [leveled.layer for leveled in layers], made_inside)
            around, conflicts = _inside(layers, binds, enter)
        else:
            around, conflicts = fold(layers)
        problems.update(dict.fromkeys(conflicts))
        planned.append(
            PlannedStep(
                step=item.step,
                here=item.place.here,
                around=around,
                queue=_queue(decisions, item),
                waits=item.waits,
            )
        )
    return tuple(planned), tuple(problems)


def _way_in(decisions: Decisions) -> WayIn:
    """How a step enters the environment with these binds; asked once for each set of them."""

    @cache
    def enter(binds: tuple[Bind, ...]) -> LeveledLayer:
        layer = None
        if decisions.run.environment.use:
            layer = decisions.ask("enter_env", launch=decisions.launch, binds=binds, pins=decisions.pins)
        return LeveledLayer(Level.ENVIRONMENT, layer or Layer())

    return enter


def _inside(
    layers: list[LeveledLayer], binds: tuple[Bind, ...], enter: WayIn
) -> tuple[Surround, tuple[Problem, ...]]:
    """All around a step that runs inside; its container sees the folder of its tokens where it reads one."""
    folded = fold([*layers, enter(binds)])
    # Which variables are in force is known after folding: a token that another layer hides has no folder.
    if any(isinstance(var.value, Secret) for var in folded[0].env):
        folded = fold([*layers, enter((*binds, TOKENS_FOLDER))])
    return folded


def _layers(decisions: Decisions, item: Placed, network: tuple[Layer, ...]) -> list[LeveledLayer]:
    """The layers around a step, without that of the environment, which depends on what these bring."""
    step, cluster = item.step, decisions.cluster
    from_hooks = decisions.ask("surround", step=step) or ()
    layers = [
        LeveledLayer(Level.CORE, fact_layers.core_layer(step)),
        LeveledLayer(Level.PLACE, fact_layers.place_layer(item.place)),
        LeveledLayer(Level.CLUSTER, fact_layers.cluster_layer(cluster, step, decisions.run.environment.use)),
        LeveledLayer(Level.CLUSTER, fact_layers.training_layer(cluster, step, decisions.run)),
        LeveledLayer(Level.STEP, step.layer),
        *(LeveledLayer(_level(layer), layer) for layer in from_hooks),
    ]
    if step.trains:
        layers.append(LeveledLayer(Level.CORE, fact_layers.secrets_layer(decisions.run)))
        layers += [LeveledLayer(_level(layer), layer) for layer in network]
        layers.append(LeveledLayer(Level.TRAINER, decisions.train_layer))
        if decisions.train is not None:
            layers.append(LeveledLayer(Level.CORE, fact_layers.logs_layer(decisions.run, cluster, step)))
        layers.append(LeveledLayer(Level.RUN_FILE, _run_file_layer(decisions.run)))
    words = _words(step, [leveled.layer for leveled in layers])
    if decisions.code is not None and fact_layers.SOURCE in words:
        layers.append(LeveledLayer(Level.CORE, fact_layers.source_layer(decisions.code)))
    return layers


def _run_file_layer(run: RunSpec) -> Layer:
    env = tuple(
        EnvVar(name=name, value=value, why="the run file sets it", source=RUN_FILE)
        for name, value in run.env.items()
    )
    return Layer(env=env, ask=dict(run.resources.ask), source=RUN_FILE)


def _level(layer: Layer) -> Level:
    return Level.SITE if layer.source.startswith("hooks:") else Level.PLUGINS


def _binds(
    decisions: Decisions, step: Step, layers: list[Layer], made_inside: frozenset[str]
) -> tuple[Bind, ...]:
    """What the step's container must see: the roles in use, the user's own places, what layers bring, and
    the run's own directory. It comes last, because a container mounts a folder before what lies below it."""
    used_roles = made_inside | _roles(decisions, step, layers)
    roles = [Bind(source=Loc(role)) for role in sorted(used_roles)]
    places = [
        Bind(source=a, readonly=True) for a in decisions.assets if isinstance(a, str) and a.startswith("/")
    ]
    brought = (bind for layer in layers for bind in layer.binds)
    return tuple(dict.fromkeys((*roles, *places, *brought, RUN_DIRECTORY)))


def _roles(decisions: Decisions, step: Step, layers: list[Layer]) -> frozenset[str]:
    """The storage roles that the step's task names."""
    locs = locs_in((_words(step, layers), decisions.assets))
    return frozenset({"runs", "checkpoints", *(loc.role for loc in locs)})


def _words(step: Step, layers: list[Layer]) -> list[Word]:
    """What the step's task names, in commands, variables and files."""
    files = (*step.files, *(file for layer in layers for file in layer.files))
    values = tuple(var.value for layer in layers for var in layer.env)
    lines = tuple(line for layer in layers for line in layer.task)
    return words_in((step.commands, lines, tuple(file.body for file in files), values))


def _queue(decisions: Decisions, item: Placed) -> str:
    if item.place.here:
        return ""
    if item.place.queue and not item.step.trains:
        return item.place.queue
    resources = decisions.run.resources
    time = resources.time if item.step.trains else None
    row = queues.choose(decisions.cluster, item.step.launch.job_nodes, time, resources.queue)
    return row.name if row else ""
