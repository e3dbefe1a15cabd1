"""The planner: asks the hooks, places the steps, folds the layers, collects every problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from hpctrain.errors import ConfigError, Problem
from hpctrain.model.cluster import Cluster
from hpctrain.model.plan import Plan
from hpctrain.model.run import Asset, Origin, RunSpec
from hpctrain.model.step import After, Launch, Need, Pin, Step
from hpctrain.model.train import Train
from hpctrain.model.words import Cmd, Join, Loc, Var, Word
from hpctrain.plan.around import Given, surround
from hpctrain.plan.encode import digest
from hpctrain.plan.goal import Goal
from hpctrain.plan.place import place
from hpctrain.plan.proof import at_once, proof

Call = Callable[..., Any]
TRAIN = "train"
NEWEST = Join(Var("HPC_CHECKPOINTS"), "/newest")
CODE = "code"
"""The name under which a trainer finds the user's own repository among its assets."""


def make(
    run: RunSpec,
    cluster: Cluster,
    pins: tuple[Pin, ...],
    call: Call,
    *,
    origins: Mapping[str, Origin] | None = None,
    plugins: tuple[str, ...] = (),
    goal: Goal | None = None,
) -> Plan:
    """The plan of a run, or of the part of it that `goal` wants. Pure as long as the hooks are."""
    run = goal.of(run) if goal else run
    maker = _Maker(run, cluster, pins, call, goal)
    steps = maker.steps()
    placed, problems = place(steps, cluster)
    planned, conflicts = surround(maker.given(), placed)
    plan = Plan(
        run=run,
        cluster=cluster,
        pins=pins,
        steps=planned,
        train=maker.train,
        problems=(*maker.problems, *problems, *conflicts),
        origins=dict(origins or {}),
        plugins=plugins,
    )
    found = tuple(p for answer in call("check_run", run=run, cluster=cluster, plan=plan) for p in answer)
    plan = attrs.evolve(plan, problems=plan.problems + found)
    return attrs.evolve(plan, digest=digest(plan))


class _Maker:
    """One planning: what the hooks answered so far."""

    def __init__(
        self, run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...], call: Call, goal: Goal | None
    ) -> None:
        self.run, self.cluster, self.pins, self._call, self._goal = run, cluster, pins, call, goal
        self.problems: list[Problem] = []
        self.train: Train | None = None
        self.launch = Launch()
        self.assets: dict[str, Word] = {}
        self._bring: dict[str, list[Step]] = {}

    def ask(self, hook: str, **more: Any) -> Any:
        """A hook's answer; a ConfigError it raises is collected, so that all problems come at once."""
        try:
            return self._call(hook, run=self.run, cluster=self.cluster, **more)
        except ConfigError as error:
            self.problems += error.problems
            return None

    def given(self) -> Given:
        """All that the surroundings are made from."""
        return Given(
            run=self.run,
            cluster=self.cluster,
            train=self.train,
            launch=self.launch,
            assets=tuple(self.assets.values()),
            ask=self._ask_with_pins,
        )

    def _ask_with_pins(self, hook: str, **more: Any) -> Any:
        return self.ask(hook, **({"pins": self.pins} if hook == "enter_env" else {}), **more)

    def steps(self) -> tuple[Step, ...]:
        env = self._env()
        data = self._data(env)
        if self._goal is not None:
            return self._part(self._goal, env, data)
        train = self._train(env, data)
        return (*env, *data, *train, *self._export(train))

    def _part(self, goal: Goal, env: list[Step], data: list[Step]) -> tuple[Step, ...]:
        """The chosen steps with all that they wait for, then the goal's own."""
        wanted = [step for name, steps in self._bring.items() if goal.assets(name) for step in steps]
        chosen = _with_earlier([*(env if goal.env else ()), *wanted], [*env, *data])
        if goal.own is None:
            return chosen
        own = goal.own(self.assets)
        alike = Train(argv=(), ranks=own.launch.ranks)
        self.launch = self.ask("launch", train=alike) or own.launch
        time = self.run.resources.time
        after = tuple(After(step.name) for step in chosen)
        minutes = int(time.minutes) if time else own.minutes
        return (*chosen, attrs.evolve(own, after=after, launch=self.launch, minutes=minutes, trains=True))

    def _env(self) -> list[Step]:
        if not self.run.environment.use:
            return []
        return _chained(self.ask("build_env", pins=self.pins) or ())

    def _data(self, env: list[Step]) -> list[Step]:
        found: list[Step] = []
        for name, asset in self._wanted():
            there = dict(self.assets)
            answer = self.ask("prepare_data", name=name, asset=asset, pins=self.pins, assets=there)
            if answer is None:
                self.problems.append(_unknown_asset(name))
                continue
            steps = [_behind(step, env) for step in _chained(answer)]
            made = [s.makes.loc for s in steps if s.makes is not None]
            self.assets[name] = made[-1] if made else _in_place(asset.path)
            self._bring[name] = steps
            found += steps
        return found

    def _wanted(self) -> Iterable[tuple[str, Asset]]:
        """The assets, and the user's own code, which comes the same way."""
        code = self.run.code
        if code is None and self.run.train.use:
            code = self.ask("checkout")
        if code is not None:
            yield CODE, Asset(git=code.git, rev=code.rev, path=code.path, sha256=code.sha256)
        yield from self.run.assets.items()

    def _train(self, env: list[Step], data: list[Step]) -> list[Step]:
        if not self.run.train.use:
            return []
        self.train = self.ask("train_command", assets=dict(self.assets))
        if self.train is None:
            return []
        self.launch = self.ask("launch", train=self.train) or self.launch
        time = self.run.resources.time
        prepared = tuple(After(step.name) for step in (*env, *data))
        brought = tuple(After(step.name) for step in data if at_once(step))
        own = [
            attrs.evolve(s, after=(*s.after, *(prepared if s.inside else brought)))
            for s in _chained(self.train.before)
        ]
        train = Step(
            name=TRAIN,
            commands=(Cmd(self.train.argv),),
            needs=frozenset({Need.TARGET, Need.GPU}),
            inside=True,
            launch=self.launch,
            minutes=int(time.minutes) if time else 60,
            code=self.train.code,
            trains=True,
            source=self.train.source,
        )
        before = (*filter(None, (proof(data, train, self.cluster),)), *own)
        return [*before, attrs.evolve(train, after=(*prepared, *(After(step.name) for step in before)))]

    def _export(self, train: list[Step]) -> list[Step]:
        target, layout = self.run.checkpoint.export, self.train and self.train.checkpoints
        if not (target and train and layout):
            return []
        answer = self.ask(
            "convert_checkpoint", source=layout.format, target=target, checkpoint=NEWEST, layout=layout
        )
        if answer is None:
            self.problems.append(
                Problem(
                    code="no-converter",
                    message=f"no plugin converts {layout.format} to {target}",
                    where="checkpoint.export",
                    fatal=False,
                )
            )
            return []
        return [attrs.evolve(s, after=s.after or (After(TRAIN),)) for s in _chained(answer)]


def _chained(answer: Iterable[Step]) -> list[Step]:
    """Steps of one answer follow each other, unless they say otherwise."""
    found: list[Step] = []
    for step in answer:
        after = step.after or ((After(found[-1].name),) if found else ())
        found.append(attrs.evolve(step, after=after))
    return found


def _with_earlier(chosen: list[Step], known: list[Step]) -> tuple[Step, ...]:
    """The chosen steps and those that they wait for, in the order of `known`."""
    names = {step.name for step in chosen}
    for step in reversed(known):
        if step.name in names:
            names |= {edge.step for edge in step.after}
    return tuple(step for step in known if step.name in names)


def _behind(step: Step, env: list[Step]) -> Step:
    """A step inside the environment waits for the environment."""
    if not (step.inside and env):
        return step
    wanted = After(env[-1].name)
    return step if wanted in step.after else attrs.evolve(step, after=(*step.after, wanted))


def _in_place(path: str) -> Word:
    """A path of the run file: as it is when absolute, below home, or beside the run file."""
    if path.startswith("~/"):
        return Loc("home", path[2:])
    return path if path.startswith("/") else Loc("runfile", path)


def _unknown_asset(name: str) -> Problem:
    return Problem(
        code="asset",
        message=f"nothing says where the asset {name} comes from",
        where=f"assets.{name}",
        hint=f'[assets]\n{name} = {{ hub = "org/name" }}   or url, git, path, command',
    )
