"""One run with its own plugins: the front door of the library, and of the command line.

    from hpctrain import Session

    run = Session("run.toml", on="frontier")
    print(run.plan().digest)
    run.submit()

It prints nothing and raises the same problems as the command line shows.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from hpctrain import lock as locks
from hpctrain.errors import ConfigError, NotReachable, Problem, fatal, raise_fatal
from hpctrain.hooks import load as loading
from hpctrain.inputs import read_inputs
from hpctrain.model.cluster import Cluster
from hpctrain.model.job import Allocation
from hpctrain.model.plan import Binding, CodeState, Plan, Survey
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Pin
from hpctrain.model.train import Configs
from hpctrain.model.words import Word
from hpctrain.plan import chain, planner, queues
from hpctrain.plan.goal import Goal
from hpctrain.run.prepare.bind import bind
from hpctrain.run.prepare.survey import survey
from hpctrain.run.this_computer import is_here
from hpctrain.runfile.facts import Facts
from hpctrain.runfile.load import Loaded
from hpctrain.selection import registered

if TYPE_CHECKING:
    from hpctrain.model.tools import Tell
    from hpctrain.run.live import LiveRun
    from hpctrain.run.prepared import Prepared
    from hpctrain.run.system.tools import Tools  # a plan starts no programs


class Session:
    """A run file on one cluster with the plugins it needs, and no others.

    Everything is read when it is made; nothing in it changes afterwards. What changes a part of it returns
    another session: `relock`, `with_pins`, `with_goal`, `on_node`.

    `path` is the run file; without one it is that of this folder, or of one above. `on` names another
    cluster, `sets` are keys as `--set` takes them (`"resources.time=20m"`), `account` is what jobs are
    charged to, `environ` replaces this process's variables.

    `extra` are objects with hooks of your own: they have the last word, like installed site hooks.
    `goal` is the part of the run that is to be done; without one it is all of it.
    """

    cluster: Cluster
    """The cluster with its facts, after all layers; its hardware is that of the run's queue."""
    facts: Facts
    """What the files of the cluster say, with the file and line of each fact."""
    loaded: Loaded
    """The run with the origin of each value."""
    lock: locks.Lock
    """The pins in `run.lock.toml`, and whether they still fit."""

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        on: str | None = None,
        sets: Sequence[str] = (),
        account: str | None = None,
        extra: Iterable[object] = (),
        environ: Mapping[str, str] | None = None,
        goal: Goal | None = None,
    ) -> None:
        self.environ = dict(os.environ if environ is None else environ)
        self.goal = goal
        self.is_on_cluster: bool | None = None
        """Whether this computer belongs to the cluster; None: its host name tells."""
        inputs = read_inputs(path, on=on, sets=sets, account=account, extra=extra, environ=self.environ)
        self.source, self.facts, self.loaded = inputs.source, inputs.facts, inputs.loaded
        self.cluster, self.lock = inputs.cluster, inputs.lock
        self._layers, self._plugins = inputs.layers, inputs.plugins
        self.hooks = registered(self._plugins, goal, self.environ)
        self._plan: Plan | None = None

    @property
    def run(self) -> RunSpec:
        """The run file's values after all layers."""
        return self.loaded.run

    @property
    def pins(self) -> tuple[Pin, ...]:
        """What `hpctrain lock` wrote for this cluster; () when nothing was locked, or not for this."""
        return self.lock.valid_pins

    @property
    def locked(self) -> bool:
        """Whether every name is pinned as the run asks now."""
        return self.lock.answers

    @property
    def binding(self) -> Binding:
        """Where the storage roles lie for this user, and the run file's own folder."""
        binding = bind(self.cluster, self.run, self.environ, on_cluster=self.is_on_cluster)
        return attrs.evolve(binding, roots={**binding.roots, "runfile": str(self.source.base)})

    def plan(self) -> Plan:
        """What would happen, made once. Its digest is the same everywhere; numbers need files."""
        if self._plan is None:
            self._plan = self._planned()
        return self._plan

    def _planned(self) -> Plan:
        run: RunSpec = self.run
        missing: tuple[Problem, ...] = ()
        if self.goal is not None and self.goal.step is not None:
            from hpctrain.run.disk.secrets import with_tokens_here  # only `exec` and `shell` have such a step

            run, missing = with_tokens_here(run, self.goal.name, self.environ, self.source.settings.secrets)
        plan = planner.make(
            run,
            self.facts.cluster,
            self.pins,
            self.hooks.call,
            origins=self.loaded.origins,
            plugins=tuple(self.hooks.plugins),
            goal=self.goal,
            configs=self._model_configs(),
        )
        problems = plan.problems if self.goal is None else map(self.goal.reworded, plan.problems)
        old = loading.outdated(self._plugins)
        every = (*missing, *problems, *self._not_replayed(plan), *self._not_done(plan))
        return attrs.evolve(plan, problems=(*self.loaded.problems, *old, *self._layers.located(every)))

    def _not_replayed(self, plan: Plan) -> tuple[Problem, ...]:
        """Why the plan is not the one that the run file is a record of."""
        if self.source.replay is None or self.goal is not None:
            return ()
        from hpctrain.runfile.layers.replay import differences  # most run files are no records

        return tuple(differences(self.source.replay, self._layers, self.loaded.contents, plan))

    def _not_done(self, plan: Plan) -> tuple[Problem, ...]:
        """What the run asks of its jobs, and the scheduler's scripts do not do."""
        resources = plan.run.resources
        is_judged = resources.mail or resources.is_chain or chain.is_vetted(plan)
        if not is_judged or fatal(plan.problems):
            return ()
        from hpctrain.run.prepare.scheduler_duties import lacking  # which renders a job, as few plans need

        return tuple(lacking(plan, self.hooks, self.environ))

    def _record(self) -> str:
        """The lock of the run's directory: it repeats the run by itself."""
        from hpctrain.runfile.layers.replay import Replay, recorded_keys  # a plan records nothing

        plan = self.plan()
        settings = [tier for tier in self.facts.run_tiers if tier.name == "settings"]
        replay = Replay(
            folder=str(self.source.base),
            digest=plan.digest if self.goal is None else "",
            plugins=plan.plugins,
            files=self.loaded.contents,
            settings=recorded_keys([*settings, *self.source.below()], self._layers),
            set=recorded_keys(self.source.above(), self._layers),
        )
        return locks.recorded(self.source.document.text, replay.text, self.source.path, pinned=self.locked)

    def _model_configs(self) -> Configs:
        """What is known here of the shape of the run's models: for the plan's numbers, and nothing else."""
        run, locked = self.run, self.lock.configs
        if not (locked or run.checkpoint.start or any(asset.path for asset in run.assets.values())):
            return {}
        from hpctrain.run.prepare import (
            model_configs,  # nothing of most plans can be read before they are locked
        )

        root: Word | None = None
        if model_configs.needs_checkpoints(run):
            with contextlib.suppress(ConfigError):  # without an account, say, which others tell
                root = self.binding.roots.get("checkpoints")
        checkpoints = Path(root) if isinstance(root, str) else None
        return model_configs.model_configs(run, self.loaded.files, locked, checkpoints)

    def survey(self) -> Survey:
        """What exists on this machine now, and how much space is free."""
        return survey(
            self.plan(),
            self.binding,
            on_cluster=self.is_on_cluster,
            code=self.code_state(),
            environ=self.environ,
            keeps_away=self._keeps_away,
        )

    def _keeps_away(self) -> bool:
        from hpctrain.run.prepare.scheduler_duties import keeps_away  # which renders a job, as few plans need

        return keeps_away(self.plan(), self.hooks, self.environ)

    def code_state(self) -> CodeState | None:
        """How the repository of `[code] path` stands; None without one."""
        if self.run.code is None or not self.run.code.path:
            return None
        from hpctrain.run.prepare.code_state import code_state  # few runs have code of their own

        return code_state(self.run, self.source.base, self._tools())

    def check_files(self, tell: Tell | None = None) -> tuple[Problem, ...]:
        """What is wrong with the data of a good plan that is on this machine, and what of its code no commit
        holds; `tell` hears how far it is."""
        if self.plan().train is None or fatal(self.plan().problems):
            return ()
        return (*self._layers.located(self._uncommitted()), *self._wrong_data(tell or _unheard))

    def _uncommitted(self) -> Iterator[Problem]:
        if state := self.code_state():
            from hpctrain.run.prepare.code_state import uncommitted  # few runs have code of their own

            yield from uncommitted(self.run, state)

    def _wrong_data(self, tell: Tell) -> tuple[Problem, ...]:
        from hpctrain.run.prepare.present import present  # a plan reads no data

        if not self.hooks.answers("check_files"):
            return ()
        on_cluster = is_here(self.cluster) if self.is_on_cluster is None else self.is_on_cluster
        try:
            binding = self.binding
        except ConfigError:  # without an account, say; whoever needs the places tells it
            binding = None
        files = present(self.plan(), self.source.base, binding, on_cluster=on_cluster)
        answers = self.hooks.call("check_files", run=self.run, files=files, tell=tell)
        return self._layers.located(problem for answer in answers for problem in answer)

    def prepared(self) -> Prepared:
        """The plan with all that it takes to check it against this machine, write it and start it."""
        from hpctrain.run.prepared import Prepared  # a plan starts no programs

        return Prepared(
            plan=self.plan(),
            binding=self.binding,
            hooks=self.hooks,
            tools=self._tools(),
            environ=self.environ,
            run_file=self.source.document.text,
            run_file_shown=self.source.document.file,
            lock=self._record(),
            secrets=self.source.settings.secrets,
            located=self._layers.located,
            is_on_cluster=self.is_on_cluster,
        )

    def allocation(self) -> Allocation:
        """The nodes that its user holds and this process is in; NotReachable where there are none."""
        from hpctrain.run import inside  # only `run --here` asks

        return inside.current_allocation(
            self.hooks, self.cluster, self.environ, self._tools(), self.source.document.file
        )

    def files(self) -> dict[str, str | bytes]:
        """Every file of the run's directory, as `submit` and `eject` write them."""
        return self.prepared().contents()

    def submit(self, *, locked: bool = False) -> LiveRun:
        """Lock what is not locked (unless `locked`), build what is missing, submit: the run to wait for."""
        raise_fatal(self.check_files())
        session = self
        if not self.locked and not locked:
            self.prepared().judge()
            session = self.relock()
        prepared = session.prepared()
        prepared.judge()
        run, _ = prepared.submit(lambda *_: None)
        return run

    def relock(self) -> Session:
        """Ask every plugin for its pins as of now and write them to the lock: the session with them."""
        from hpctrain.run.prepare import pinning  # a plan pins nothing

        try:
            pins = pinning.resolve(self.hooks, self.run, self.cluster, self.binding, self.lock, self._tools())
        except (ConfigError, NotReachable) as error:
            raise type(error)(*self._layers.located(error.problems)) from None
        return self.with_pins(pins)

    def with_pins(self, pins: Iterable[Pin]) -> Session:
        """Write these pins to the lock: the session with them."""
        from hpctrain.run.prepare import pinning  # a plan pins nothing

        pinning.write(self.source.path, self.cluster.name, self.run, pins)
        session = self._copy()
        session.lock = locks.read(self.source.path, self.cluster.name, self.run)
        return session

    def with_goal(self, goal: Goal) -> Session:
        """The session of a part of the same run."""
        session = self._copy()
        session.goal = goal
        session.hooks = registered(self._plugins, goal, self.environ)
        return session

    def on_node(self) -> Session:
        """The session of the same run on a compute node, whose name need not tell its cluster.

        Its nodes are held already: a queue that takes no submitted jobs is no obstacle.
        """
        session = self._copy()
        session.is_on_cluster = True
        session.facts = attrs.evolve(self.facts, cluster=queues.with_held_nodes(self.facts.cluster))
        session.cluster = queues.with_queue_hardware(session.facts.cluster, self.run.resources)
        return session

    def _copy(self) -> Session:
        """A session with everything that this one has read, but without its plan."""
        session = copy(self)
        session._plan = None
        return session

    def _tools(self) -> Tools:
        """Tools whose children see what the cluster's facts let through, and nothing else of the caller."""
        from hpctrain.run.system.tools import Tools  # a plan starts no programs

        return Tools(self.environ, keep=self.cluster.exported)


def _unheard(_: str, done: int, total: int, /) -> None:
    """How far long work is, where nobody wants to know."""
