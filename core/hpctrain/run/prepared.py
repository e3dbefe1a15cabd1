"""A plan that is ready to become a run: judged against this machine, written to a folder, submitted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import attrs
from attrs import frozen

from hpctrain.errors import ConfigError, NotReachable, Problem, StepRefused, raise_fatal
from hpctrain.hooks.manager import Hooks
from hpctrain.model.cluster import Queue
from hpctrain.model.job import Allocation, JobFiles, JobState
from hpctrain.model.plan import Binding, CodeState, Plan, PlannedStep, Survey
from hpctrain.model.words import Secret
from hpctrain.plan.encode import encode
from hpctrain.plan.tokens import TokenPlace, places
from hpctrain.render import shell
from hpctrain.render.tree import Sources, tree
from hpctrain.run.disk import secrets
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.registry import Registry
from hpctrain.run.live import LiveRun, graph_of, query_jobs
from hpctrain.run.prepare import jobzip
from hpctrain.run.prepare.code_state import code_state
from hpctrain.run.prepare.earlier import earlier_runs
from hpctrain.run.prepare.survey import closed, survey, untrusted
from hpctrain.run.steps.executor import OnProgress, Outcome
from hpctrain.run.system import files
from hpctrain.run.system.tools import Tools
from hpctrain_job.files import trust

Locate = Callable[[Iterable[Problem]], tuple[Problem, ...]]
"""Gives problems of a key their place in the user's files."""


@frozen(kw_only=True)
class Prepared:
    """A plan, where it lies for this user, and all that it takes to check, write and start it."""

    plan: Plan
    binding: Binding
    hooks: Hooks
    tools: Tools
    environ: Mapping[str, str]
    run_file: str
    """The text of the run file."""
    run_file_shown: str
    """The run file as the user wrote it on the command line."""
    lock: str
    """The text that repeats the run."""
    secrets: Mapping[str, object]
    """The table of secrets in the user's settings."""
    located: Locate
    is_on_cluster: bool | None = None
    """Whether this computer belongs to the cluster; None: its host name tells."""

    def survey(self) -> Survey:
        """What exists on this machine now, and how much space is free."""
        return survey(
            self.plan,
            self.binding,
            on_cluster=self.is_on_cluster,
            code=self._code(),
            environ=self.environ,
            keeps_away=self._keeps_away,
        )

    def _keeps_away(self) -> bool:
        from hpctrain.run.prepare.scheduler_duties import keeps_away  # which renders a job, as few plans need

        return keeps_away(self.plan, self.hooks, self.environ)

    def judge(self) -> tuple[Problem, ...]:
        """Every problem of the plan, and what speaks against submitting now; fatal ones raise."""
        raise_fatal(self.plan.problems)
        state = self.survey()
        if not state.is_on_cluster:
            raise self._elsewhere()
        raise_fatal((*untrusted(self.plan, state), *closed(self.plan, self.binding, state)))
        secrets.require(_tokens(self.plan), self.environ, settings=self.secrets)
        answers = self.hooks.call("check_submit", plan=self.plan, survey=self._with_jobs(state))
        problems = (*self.plan.problems, *(problem for answer in answers for problem in answer))
        raise_fatal(problems)
        return problems

    def contents(self) -> dict[str, str | bytes]:
        """Every file of the run's directory, by its path in it."""
        packages = {package for planned in self.plan.steps for package in planned.step.code}
        sources = Sources(
            run_file=self.run_file,
            lock=self.lock,
            code=jobzip.build(packages).data,
            secrets=self.secrets,
        )
        return tree(self.plan, self.binding, self._render, sources)

    def token_places(self) -> dict[str, tuple[TokenPlace, ...]]:
        """Token of the run -> where it is looked for, best first."""
        return {name: places(name, self.secrets) for name in _tokens(self.plan)}

    def eject(self, folder: Path) -> None:
        """Write the same files into a folder of the user's, as scripts to run without hpctrain."""
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ConfigError.of("exists", f"{folder} exists and is not empty", hint=f"--out {folder}-2")
        raise_fatal(self.plan.problems)
        files.write_tree(folder, self.contents())

    def submit(
        self, on_progress: OnProgress, allocation: Allocation | None = None
    ) -> tuple[LiveRun, Outcome]:
        """A new run, from its directory to its jobs; in an `allocation` no job is submitted."""
        run = self._live(self._create())
        try:
            return run, run.execute(on_progress, allocation)
        except StepRefused as error:
            raise StepRefused(*self.located(error.problems)) from None

    def under_way(self) -> LiveRun | None:
        """The newest run of the same plan whose jobs are not over: a second start goes on with it."""
        run = self.newest_run()
        return run if run is not None and run.in_progress() else None

    def newest_run(self) -> LiveRun | None:
        """The newest run of the same plan."""
        runs = self.earlier_runs()
        return self._live(runs[-1]) if runs else None

    def earlier_runs(self) -> list[RunDirectory]:
        """The runs of the same plan, the newest last."""
        return earlier_runs(self.plan, self.binding)

    def _live(self, directory: RunDirectory) -> LiveRun:
        return LiveRun(
            directory=directory,
            graph=graph_of(directory),
            hooks=self.hooks,
            tools=self.tools,
            environ=self.environ,
        )

    def _create(self) -> RunDirectory:
        """Write the run directory under the role `runs` and note it in the list of runs."""
        root, plan = self.binding.roots.get("runs"), self.plan
        if not isinstance(root, str):
            raise ConfigError.of("role", "the location of runs is not known here", where="storage.runs")
        accepted = trust.Accepted(shell.owners(plan.cluster, "runs", self.binding))
        run = RunDirectory.create(Path(root), plan.run.name, plan.digest, self.contents(), accepted)
        code = self._code()
        run.record.append(
            "created",
            digest=plan.digest,
            cluster=plan.cluster.name,
            plugins=list(plan.plugins),
            loaded=self.hooks.files,
            python=sys.executable,
            **({"code": encode(code)} if code else {}),
        )
        Registry.of(self.environ).add(run, plan.cluster.name)
        return run

    def _code(self) -> CodeState | None:
        return code_state(self.plan.run, Path(str(self.binding.roots["runfile"])), self.tools)

    def _render(self, step: PlannedStep, plan: Plan, binding: Binding) -> JobFiles:
        job_files: JobFiles = self.hooks.need("render_job", step=step, plan=plan, binding=binding)
        return job_files

    def _with_jobs(self, state: Survey) -> Survey:
        """The survey with what is queued, so far as a limit of the site or a plugin wants to know it."""
        if _counts_jobs(self.plan, self.hooks):
            state = attrs.evolve(state, jobs=self._queued(self.plan.run.resources.account))
        if _counts_project(self.plan):
            state = attrs.evolve(state, project=self._queued(self.binding.account, project=True))
        return state

    def _queued(self, account: str, *, project: bool = False) -> tuple[JobState, ...]:
        return tuple(query_jobs(self.hooks, account, self.tools, project=project))

    def _elsewhere(self) -> NotReachable:
        cluster = self.plan.cluster.name
        return NotReachable.of(
            "not-here",
            f"this computer is not a login node of {cluster}",
            hint=f"a login node of {cluster}; or  hpctrain eject {self.run_file_shown} --on {cluster}",
        )


def _counts_jobs(plan: Plan, hooks: Hooks) -> bool:
    """Whether a limit or a plugin wants to know what is queued: the scheduler is not asked for nothing."""
    is_limited = any(row.jobs_per_user for row in _queues(plan))
    return is_limited or hooks.answers("check_submit", besides="core:")


def _counts_project(plan: Plan) -> bool:
    """Whether a limit speaks of what all users of the account have queued."""
    policy = plan.cluster.policy
    is_capped = policy.max_gpus is not None or policy.max_nodes is not None
    trains = any(planned.step.trains and not planned.here for planned in plan.steps)
    return (is_capped and trains) or any(row.jobs_per_project for row in _queues(plan))


def _queues(plan: Plan) -> Iterator[Queue]:
    """The rows into which the plan's jobs fall."""
    rows = (plan.cluster.queue_named(planned.queue) for planned in plan.steps if planned.queue)
    return (row for row in rows if row)


def _tokens(plan: Plan) -> tuple[str, ...]:
    """The tokens that the plan's steps read, in the run file's order."""
    env = (var for planned in plan.steps for var in planned.around.env)
    read = {var.value.name for var in env if isinstance(var.value, Secret)}
    return tuple(name for name in plan.run.secrets if name in read)
