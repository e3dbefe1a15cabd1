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
from hpctrain.model.train import Configs, Train
from hpctrain.model.words import Cmd, Join, Loc, Var, Word
from hpctrain.plan import chain, fact_layers, queues
from hpctrain.plan.around import Decisions, surround
from hpctrain.plan.encode import digest
from hpctrain.plan.goal import Goal
from hpctrain.plan.order import need_order
from hpctrain.plan.place import place
from hpctrain.plan.proof import at_once, proof

Call = Callable[..., Any]
NEWEST = Join(Var("HPC_CHECKPOINTS"), "/newest")
CODE, ORIGIN = "code", ".code"
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
    configs: Configs | None = None,
) -> Plan:
    """The plan of a run, or of the part of it that `goal` wants. Pure as long as the hooks are."""
    run = chain.with_time(goal.of(run) if goal else run, cluster)
    cluster = queues.with_queue_hardware(cluster, run.resources)
    planning = _Planning(run, cluster, pins, call, goal, configs or {})
    steps = planning.steps()
    need_order(steps, plugins, run.assets)
    placed, unplaced = place(steps, cluster)
    planned, conflicts = surround(planning.decisions(), placed)
    plan = Plan(
        run=run,
        cluster=cluster,
        pins=pins,
        steps=planned,
        train=planning.train,
        problems=(*planning.problems, *unplaced, *conflicts),
        origins=dict(origins or {}),
        plugins=plugins,
    )
    answers = call("check_run", run=run, cluster=cluster, plan=plan)
    checked = tuple(problem for answer in answers for problem in answer)
    plan = attrs.evolve(plan, problems=plan.problems + checked)
    return attrs.evolve(plan, digest=digest(plan))


class _Planning:
    """One planning: what the hooks answered so far."""

    def __init__(
        self,
        run: RunSpec,
        cluster: Cluster,
        pins: tuple[Pin, ...],
        call: Call,
        goal: Goal | None,
        configs: Configs,
    ) -> None:
        self.run, self.cluster, self.pins, self._call, self._goal = run, cluster, pins, call, goal
        self._configs = configs
        self.problems: list[Problem] = []
        self.train: Train | None = None
        self.launch = Launch()
        self.assets: dict[str, Word] = {}
        self._asset_steps: dict[str, list[Step]] = {}

    def ask(self, hook: str, **arguments: Any) -> Any:
        """A hook's answer; a ConfigError it raises is collected, so that all problems come at once."""
        try:
            return self._call(hook, run=self.run, cluster=self.cluster, **arguments)
        except ConfigError as error:
            # A hook that is asked several times (`enter_env`) says the same each time.
            self.problems += (problem for problem in error.problems if problem not in self.problems)
            return None

    def decisions(self) -> Decisions:
        """All that the surroundings of the steps are made from, once the steps are there."""
        return Decisions(
            run=self.run,
            cluster=self.cluster,
            pins=self.pins,
            train=self.train,
            launch=self.launch,
            assets=tuple(self.assets.values()),
            code=self.train.code_from if self.train and self.train.code_from else self.assets.get(CODE),
            ask=self.ask,
        )

    def steps(self) -> tuple[Step, ...]:
        """Every step of the run, or of its part: environment, data, training, export."""
        env = self._env()
        data = self._data(env)
        if self._goal is not None:
            return self._part(self._goal, env, data)
        train = self._train(env, data)
        return (*env, *data, *train, *self._export(train))

    def _part(self, goal: Goal, env: list[Step], data: list[Step]) -> tuple[Step, ...]:
        """The steps that the goal wants with all that they wait for, then the one in place of training."""
        bringing = [step for name, steps in self._asset_steps.items() if goal.assets(name) for step in steps]
        chosen = _with_earlier([*(env if goal.env else ()), *bringing], [*env, *data])
        if goal.step is None:
            return chosen
        step = goal.step(self.assets)
        # `launch` is a question about a training; this one has the ranks of the step in its place.
        in_its_place = Train(argv=(), ranks=step.launch.ranks)
        self.launch = self.ask("launch", train=in_its_place) or step.launch
        time = self.run.resources.time
        after = tuple(After(earlier.name) for earlier in chosen)
        minutes = int(time.minutes) if time else step.minutes
        return (*chosen, attrs.evolve(step, after=after, launch=self.launch, minutes=minutes, trains=True))

    def _env(self) -> list[Step]:
        """The steps that build the environment."""
        if not self.run.environment.use:
            return []
        return _chained(self.ask("build_env", pins=self.pins) or ())

    def _data(self, env: list[Step]) -> list[Step]:
        """The steps that bring the assets; where each asset lies is noted on the way."""
        every: list[Step] = []
        for name, asset in self._assets_of_run():
            earlier = dict(self.assets)
            answer = self.ask("prepare_data", name=name, asset=asset, pins=self.pins, assets=earlier)
            if answer is None:
                self.problems.append(_unknown_asset(name))
                continue
            steps = [_behind(step, env) for step in _chained(answer)]
            artifacts = [step.makes.loc for step in steps if step.makes is not None]
            self.assets[name] = artifacts[-1] if artifacts else _in_place(asset.path)
            self._asset_steps[name] = steps
            every += steps
        return every

    def _assets_of_run(self) -> Iterable[tuple[str, Asset]]:
        """The assets, and before them the user's own code, which comes the same way."""
        code = self.run.code
        if code is None and self.run.train.use:
            code = self.ask("checkout")
        if code is not None:
            yield CODE, Asset(git=code.git, rev=code.rev, path=code.path, sha256=code.sha256)
        yield from self.run.assets.items()

    def _train(self, env: list[Step], data: list[Step]) -> list[Step]:
        """The training, and before it what its trainer prepares and what proves that it needs no network."""
        if not self.run.train.use:
            return []
        code = {CODE: fact_layers.SOURCE, ORIGIN: self.assets[CODE]} if CODE in self.assets else {}
        self.train = self.ask(
            "train_command", assets={**self.assets, **code}, pins=self.pins, configs=self._configs
        )
        if self.train is None:
            return []
        self._judge_start(self.train)
        self._judge_batch(self.train)
        self.launch = self.ask("launch", train=self.train) or self.launch
        time = self.run.resources.time
        prepared = tuple(After(step.name) for step in (*env, *data))
        fetched = tuple(After(step.name) for step in data if at_once(step))
        trainer_steps = [
            attrs.evolve(step, after=(*step.after, *(prepared if step.inside else fetched)))
            for step in _chained(self.train.before)
        ]
        train = Step(
            name=chain.TRAIN,
            commands=(Cmd(self.train.argv),),
            needs=frozenset({Need.TARGET, Need.GPU}),
            inside=True,
            launch=self.launch,
            minutes=int(time.minutes) if time else 60,
            code=self.train.code,
            trains=True,
            source=self.train.source,
        )
        before = (*filter(None, (proof(data, train, self.cluster),)), *trainer_steps)
        return [*before, attrs.evolve(train, after=(*prepared, *(After(step.name) for step in before)))]

    def _judge_start(self, train: Train) -> None:
        """A start that the trainer did not take up: it would train something else in silence."""
        if self.run.checkpoint.start and train.start == "":
            self.problems.append(
                Problem(
                    code="start-missing",
                    message=f"the trainer {self.run.train.use} knows no start",
                    where="checkpoint.start",
                    hint="remove start, and say it in the trainer's own way",
                )
            )

    def _judge_batch(self, train: Train) -> None:
        """The size of a step that the trainer did not take up: each machine would train something else."""
        if self.run.train.global_batch_size and train.numbers.rows_per_step is None:
            self.problems.append(
                Problem(
                    code="global-batch",
                    message=f"the trainer {self.run.train.use} knows no global_batch_size",
                    where="train.global_batch_size",
                    hint="remove global_batch_size, and say it in the trainer's own way",
                )
            )

    def _export(self, train: list[Step]) -> list[Step]:
        """The steps behind the training that convert its checkpoint."""
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
        return [attrs.evolve(step, after=step.after or (After(chain.TRAIN),)) for step in _chained(answer)]


def _chained(answer: Iterable[Step]) -> list[Step]:
    """Steps of one answer follow each other, unless they say otherwise."""
    chain: list[Step] = []
    for step in answer:
        after = step.after or ((After(chain[-1].name),) if chain else ())
        chain.append(attrs.evolve(step, after=after))
    return chain


def _with_earlier(chosen: list[Step], every: list[Step]) -> tuple[Step, ...]:
    """The chosen steps and those that they wait for, in the order of `every`."""
    names = {step.name for step in chosen}
    for step in reversed(every):
        if step.name in names:
            names |= {edge.step for edge in step.after}
    return tuple(step for step in every if step.name in names)


def _behind(step: Step, env: list[Step]) -> Step:
    """A step inside the environment waits for the environment."""
    if not (step.inside and env):
        return step
    edge = After(env[-1].name)
    return step if edge in step.after else attrs.evolve(step, after=(*step.after, edge))


def _in_place(path: str) -> Word:
    """A path of the run file: as it is when absolute, below home, or beside the run file."""
    if path.startswith("~/"):
        return Loc("home", path[2:])
    return path if path.startswith("/") else Loc("runfile", path)


def _unknown_asset(name: str) -> Problem:
    return Problem(
        code="asset",
        message=f"asset {name} has no origin",
        where=f"assets.{name}",
        hint=f'[assets]\n{name} = {{ hub = "org/name" }}   or url, git, path, command',
    )
