"""Start a run: lock, plan, check against this machine, render, write its directory, carry it out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from hpctrain.errors import ConfigError, NotReachable, Problem, StepRefused, SubmitError, raise_fatal
from hpctrain.hooks import load as loading
from hpctrain.hooks.manager import Hooks
from hpctrain.hooks.scan import names
from hpctrain.lock import REBUILD, asked, path_of, text
from hpctrain.model.job import Allocation, JobFiles, JobState, State
from hpctrain.model.plan import Binding, Plan, PlannedStep
from hpctrain.model.step import Pin
from hpctrain.model.words import Secret
from hpctrain.render.graph import Graph
from hpctrain.render.graph import read as read_graph
from hpctrain.render.tree import Sources, tree
from hpctrain.run import files, jobzip, secrets
from hpctrain.run.carry import Crew, Outcome, Tell, carry
from hpctrain.run.directory import RunDirectory
from hpctrain.run.poll import Poll
from hpctrain.run.registry import Registry, state_folder
from hpctrain.run.status import Run, RunState, states
from hpctrain.run.submit import Query, submission
from hpctrain.run.tools import Tools

if TYPE_CHECKING:
    from hpctrain.session import Session

GOING = (State.BUILDING, State.QUEUED, State.RUNNING)
"""States of a step that somebody or something works on now."""


def tools_for(session: Session) -> Tools:
    """Tools whose children see what the cluster's facts let through, and nothing else of the caller."""
    return Tools(session.environ, keep=session.cluster.policy.submit_env)


def lock(session: Session, tools: Tools) -> tuple[Pin, ...]:
    """Ask every plugin for its pins and write them to the lock beside the run file."""
    answers = session.hooks.call("pin", run=session.run, cluster=session.cluster, tools=tools)
    kept = [p for p in session.lock.pins if p.kind == REBUILD]
    pins = tuple(dict.fromkeys([*(p for answer in answers for p in answer), *kept]))
    write_pins(session, pins)
    return pins


def write_pins(session: Session, pins: tuple[Pin, ...]) -> None:
    """Make `pins` the lock of this session's cluster."""
    path = session.raw.path
    files.write(path_of(path), text(path, {session.cluster.name: (asked(session.run), pins)}))
    session.forget()


def contents(session: Session) -> dict[str, str | bytes]:
    """Every file of the run's directory."""
    plan = session.plan()
    packages = {package for s in plan.steps for package in s.step.code}
    locked = path_of(session.raw.path)
    sources = Sources(
        run_file=session.raw.path.read_text(encoding="utf-8"),
        lock=locked.read_text(encoding="utf-8") if session.pins and locked.is_file() else "",
        code=jobzip.build(packages).data,
    )

    def render(step: PlannedStep, plan: Plan, binding: Binding) -> JobFiles:
        found: JobFiles = session.hooks.need("render_job", step=step, plan=plan, binding=binding)
        return found

    return tree(plan, session.binding, render, sources)


def judge(session: Session, tools: Tools) -> tuple[Problem, ...]:
    """Every problem of the plan, and what speaks against submitting now; fatal ones raise."""
    plan = session.plan()
    raise_fatal(plan.problems)
    survey = session.survey()
    if not survey.there:
        here = f"hpctrain eject {session.raw.document.file} --on {session.cluster.name}"
        raise NotReachable.of(
            "not-here",
            f"this computer is no login node of {session.cluster.name}",
            hint=f"a login node of {session.cluster.name}; or  {here}",
        )
    secrets.require(_tokens(plan), session.environ, settings=session.raw.settings.secrets)
    if _counts_jobs(plan, session.hooks):
        mine = tuple(query_jobs(session.hooks, session.run.resources.account, tools))
        survey = attrs.evolve(survey, jobs=mine)
    policy = plan.cluster.policy
    capped = policy.max_gpus is not None or policy.max_nodes is not None
    if capped and any(s.step.trains and not s.here for s in plan.steps):
        all_ = query_jobs(session.hooks, session.binding.account, tools, project=True)
        survey = attrs.evolve(survey, project=tuple(all_))
    answers = session.hooks.call("check_submit", plan=plan, survey=survey)
    found = (*plan.problems, *(p for answer in answers for p in answer))
    raise_fatal(found)
    return found


def _counts_jobs(plan: Plan, hooks: Hooks) -> bool:
    """Whether a limit or a plugin wants to know what is queued: the scheduler is not asked for nothing."""
    rows = (plan.cluster.queue_named(s.queue) for s in plan.steps if s.queue)
    return any(row and row.jobs_per_user for row in rows) or hooks.answers("check_submit", besides="core:")


def _tokens(plan: Plan) -> tuple[str, ...]:
    """The tokens that the plan's steps read, in the run file's order."""
    read = {var.value.name for s in plan.steps for var in s.around.env if isinstance(var.value, Secret)}
    return tuple(name for name in plan.run.secrets if name in read)


def create(session: Session) -> RunDirectory:
    """Write the run directory under the role `runs` and note it in the list of runs."""
    root = session.binding.roots.get("runs")
    if not isinstance(root, str):
        raise ConfigError.of("role", "where runs lie is not known here", where="storage.runs")
    plan = session.plan()
    run = RunDirectory.create(Path(root), plan.run.name, plan.digest, contents(session))
    run.record.append("created", digest=plan.digest, cluster=plan.cluster.name, plugins=list(plan.plugins))
    Registry.of(session.environ).add(run, plan.cluster.name)
    return run


def eject(session: Session, out: Path) -> Plan:
    """Write the same files into a folder of the user's, as scripts to run without hpctrain."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError.of("exists", f"{out} exists and is not empty", hint=f"--out {out}-2")
    plan = session.plan()
    raise_fatal(plan.problems)
    for name, content in contents(session).items():
        path = out / name
        files.make_folder(path.parent)
        files.write(path, content, program=path.suffix == ".sh")
    return plan


def submit(
    session: Session, tools: Tools, tell: Tell, inside: Allocation | None = None
) -> tuple[RunDirectory, Outcome]:
    """A new run, from its directory to its jobs; `inside` of nodes that are held no job is submitted."""
    run = create(session)
    graph = graph_of(run)
    hands = crew(graph, session.hooks, tools, session.environ, tell)
    try:
        return run, carry(run, graph, attrs.evolve(hands, inside=inside.env if inside else None))
    except StepRefused as error:
        raise StepRefused(*session.located(error.problems)) from None


def under_way(session: Session, tools: Tools) -> RunDirectory | None:
    """The newest run of the same plan whose jobs are not over: a second start goes on with it."""
    root, plan = session.binding.roots.get("runs"), session.plan()
    home = Path(root, plan.run.name) if isinstance(root, str) else None
    same = [r for r in RunDirectory.all(home) if r.digest8 == plan.digest[:8]] if home else []
    if not same:
        return None
    states = states_of(same[-1], graph_of(same[-1]), session.hooks, tools, session.environ)
    return same[-1] if any(state in GOING for state in states.values()) else None


def graph_of(run: RunDirectory) -> Graph:
    """What the run's directory says of its steps."""
    return read_graph(run.path / "graph.json")


def go_on(
    run: RunDirectory, graph: Graph, hooks: Hooks, tools: Tools, environ: Mapping[str, str], tell: Tell
) -> Outcome:
    """Do what is left of a run: steps that waited, jobs that ended badly."""
    found = status_of(run, graph, hooks, tools, environ).steps
    ending = next((s for s in found if s.ending), None)
    if ending is not None:
        raise SubmitError.of(
            "job-ending",
            f"job {ending.job} of step {ending.step} was cancelled and has not ended yet",
            hint=f"hpctrain status {run.title}      (then continue)",
        )
    states = {s.step: s.state for s in found}
    return carry(run, graph, crew(graph, hooks, tools, environ, tell), states)


def states_of(
    run: RunDirectory, graph: Graph, hooks: Hooks, tools: Tools, environ: Mapping[str, str]
) -> dict[str, State]:
    """Each step's state now."""
    return {s.step: s.state for s in status_of(run, graph, hooks, tools, environ).steps}


def jobs_of(
    run: RunDirectory, graph: Graph, hooks: Hooks, tools: Tools, environ: Mapping[str, str]
) -> dict[str, str]:
    """The jobs that are not over, by step."""
    found = status_of(run, graph, hooks, tools, environ)
    return {s.step: s.job for s in found.steps if s.job and not (s.state.over or s.ending)}


def cancel(run: RunDirectory, hooks: Hooks, tools: Tools, jobs: Mapping[str, str]) -> None:
    """End these jobs and put it on record."""
    if not jobs:
        return
    hooks.need("cancel_jobs", ids=tuple(jobs.values()), tools=tools)
    entries = run.record.read()
    for step, job in jobs.items():
        last = submission(entries, step)
        run.record.append("cancelled", step=step, tag=last.tag if last else "", job=job)


def status_of(
    run: RunDirectory, graph: Graph, hooks: Hooks, tools: Tools, environ: Mapping[str, str]
) -> RunState:
    """The run's state: its jobs' own records, then one question to the scheduler."""
    poll = Poll(
        query=query_of(graph, hooks, tools),
        cache=state_folder(environ) / "polls" / f"{graph.cluster}.json",
        floor_s=graph.poll_seconds,
    )
    return states([Run(directory=run.path, nodes=graph.nodes)], poll)[0]


def crew(graph: Graph, hooks: Hooks, tools: Tools, environ: Mapping[str, str], tell: Tell) -> Crew:
    """The scheduler's hooks as plain functions."""
    from hpctrain.runfile.settings import read_settings

    return Crew(
        submit=lambda job, tag: hooks.need("submit_job", job=job, tag=tag, tools=tools),
        query=query_of(graph, hooks, tools),
        tools=tools,
        environ=environ,
        tell=tell,
        event=lambda event: hooks.tell(event=event),
        secrets=read_settings(environ).secrets,
    )


def query_of(graph: Graph, hooks: Hooks, tools: Tools) -> Query:
    """`query_jobs` for this run's account."""

    def query(ids: tuple[str, ...], tags: tuple[str, ...]) -> Iterable[JobState]:
        return query_jobs(hooks, graph.account, tools, ids, tags)

    return query


def query_jobs(
    hooks: Hooks,
    account: str,
    tools: Tools,
    ids: tuple[str, ...] = (),
    tags: tuple[str, ...] = (),
    *,
    project: bool = False,
) -> Iterable[JobState]:
    """What the scheduler knows of these jobs; of all yours, or the project's, when none are named."""
    asked = {"ids": ids, "tags": tags, "account": account, "project": project}
    found: Iterable[JobState] = hooks.need("query_jobs", **asked, tools=tools)
    return found


def scheduler_hooks(scheduler: str, environ: Mapping[str, str]) -> Hooks:
    """What a run needs after it was rendered: its scheduler, and the observers."""
    off = environ.get("HPCTRAIN_DISABLE_HOOKS", "").replace(",", " ").split()
    hooks = Hooks(trace=bool(environ.get("HPCTRAIN_TRACE")), disabled=off)
    for kind, name in (("schedulers", scheduler), *(("hooks", n) for n in names("hooks") if n not in off)):
        entry = loading.find(kind, name)
        hooks.add(entry, loading.load(entry))
    return hooks
