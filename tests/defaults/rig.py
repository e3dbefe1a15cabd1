"""Plan a run with core's own hooks and a few more, render it, and really run its steps here."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path

import attrs

from hpctrain.defaults import PLUGINS
from hpctrain.hooks.manager import Hooks
from hpctrain.hooks.scan import Entry
from hpctrain.model.cluster import (
    Cluster,
    Hardware,
    LaunchFacts,
    Place,
    Policy,
    Queue,
    Source,
    Storage,
)
from hpctrain.model.network import Network
from hpctrain.model.plan import Binding, Plan
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Need, Pin
from hpctrain.model.train import Train
from hpctrain.plan import planner
from hpctrain.render.tree import Sources, tree
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.prepare.jobzip import build
from hpctrain.run.steps.execute import run_step
from hpctrain.run.system.tools import Tools

ROLES = ("env", "assets", "runs", "checkpoints", "state", "home")
ALL = tuple(Need)
PATH = "/usr/local/bin:/usr/bin:/bin"


def cluster(
    *places: Place, arch: str = "native", queues: Iterable[Queue] = (), **hardware: object
) -> Cluster:
    """A cluster whose places are all here, unless they say otherwise."""
    return Cluster(
        name="toy",
        title="A toy",
        scheduler="local",
        arch=arch,
        source=(Source(id="doc", title="The toy's page", checked="2026-11-20"),),
        hardware=Hardware(source="doc", **hardware),  # type: ignore[arg-type]
        launch=LaunchFacts(source="doc", cpus_per_gpu=8),
        policy=Policy(source="doc"),
        network=Network(source="doc"),
        place=places or (Place(name="here", provides=ALL, here=True, source="doc"),),
        queue=tuple(queues),
        storage={role: Storage(path=f"/fs/{role}", source="doc") for role in ROLES},
    )


def hooks(*more: object) -> Hooks:
    """Core's defaults and then `more`, as a session registers them."""
    found = Hooks()
    for name in PLUGINS:
        found.add(Entry("core", name.rpartition(".")[2], name, "hpctrain", "0"), import_module(name))
    for number, plugin in enumerate(more):
        found.add(Entry("hooks", f"more{number}", "tests", "tests", "0"), plugin)
    return found


def plan(run: RunSpec, on: Cluster, *more: object, pins: tuple[Pin, ...] = ()) -> Plan:
    """The plan of a run."""
    return planner.make(run, on, pins, hooks(*more).call)


@attrs.frozen
class World:
    """Roots of the roles below one folder, and what happens there."""

    folder: Path
    files: Path
    env: Mapping[str, str] = attrs.field(factory=dict)

    def root(self, role: str) -> Path:
        return self.folder / role

    def execute(self, made: Plan) -> RunDirectory:
        """Render the plan and run every step, in order; StepFailed when one fails."""
        roots = {**{r: str(self.root(r)) for r in made.cluster.storage}, "runfile": str(self.files)}
        binding = Binding(roots=roots, user="u", python=sys.executable)
        sources = Sources(run_file="", code=build().data)
        content = tree(made, binding, lambda *_: None, sources)  # type: ignore[arg-type]
        directory = RunDirectory.create(self.root("runs"), made.run.name, made.digest, content)
        tools = Tools()
        for planned in made.steps:
            env = {"HOME": str(self.folder), "PATH": PATH, **self.env}
            run_step(directory, planned.name, tools, env=env)
        return directory

    def published(self, made: Plan, step: str) -> Path:
        """Where a step's artifact lies."""
        planned = made.step_named(step)
        assert planned is not None
        assert planned.step.makes is not None
        loc = planned.step.makes.loc
        return self.root(loc.role) / loc.path


class Trainer:
    """A trainer whose command is given: for plans that need one."""

    def __init__(self, train: Train) -> None:
        self.train = train
