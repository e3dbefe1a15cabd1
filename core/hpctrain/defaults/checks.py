"""What is wrong with a plan on any cluster: limits, moving names, assets that nothing reads."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from hpctrain.defaults import chains, limits, names
from hpctrain.defaults.pins import repositories, snapshots
from hpctrain.defaults.sources import RUNFILE
from hpctrain.errors import Problem
from hpctrain.hooks.marker import hookimpl
from hpctrain.model.cluster import Cluster
from hpctrain.model.duration import Duration
from hpctrain.model.plan import Plan, Survey
from hpctrain.model.run import RunSpec
from hpctrain.model.words import Loc, locs_in, words_in
from hpctrain.plan import predict
from hpctrain.plan.proof import PROOF


@hookimpl
def check_run(run: RunSpec, cluster: Cluster, plan: Plan) -> list[Problem]:
    """The problems of a plan that core finds without a plugin."""
    return [
        *limits.problems(plan),
        *_account(run, cluster),
        *_memory(run, cluster),
        *_unfinished(plan),
        *chains.problems(plan),
        *_moving(plan),
        *_roles(plan),
        *_cut(plan),
        *_unused(plan),
        *unheard(cluster),
        *_network(plan),
    ]


@hookimpl
def check_submit(plan: Plan, survey: Survey) -> list[Problem]:
    """What the queues hold of this user, and of the project, already."""
    from hpctrain.defaults import crowding  # a plan asks no queue

    return [*crowding.crowded(plan, survey), *crowding.capped(plan, survey)]


def _network(plan: Plan) -> Iterator[Problem]:
    if plan.cluster.network.fabric != "tcp":
        from hpctrain.defaults import stacks  # a table is read for it

        yield from stacks.problems(plan)


def _account(run: RunSpec, cluster: Cluster) -> Iterator[Problem]:
    if cluster.policy.account == "required" and not run.resources.account:
        # Not fatal: an account is personal, and a plan is not; submitting needs it.
        yield Problem(
            code="account",
            message=f"{cluster.name} charges a project, and no account is given",
            where="resources.account",
            hint="hpctrain submit --account NAME      (or `account` in settings)",
            fatal=False,
        )


def _memory(run: RunSpec, cluster: Cluster) -> Iterator[Problem]:
    requested, have = run.resources.memory_gb, cluster.hardware.memory_gb
    if requested and have and requested > have:
        yield Problem(
            code="memory-limit",
            message=f"{requested} GB exceed the memory of a node of {cluster.name}",
            where="resources.memory_gb",
            hint=f"memory_gb = {int(have)}",
        )


def _unfinished(plan: Plan) -> Iterator[Problem]:
    """One job that cannot train to the end, by the plan's own prediction: how many it takes."""
    predicted, train, time = predict.seconds(plan), plan.step_named("train"), plan.run.resources.time
    time_in_all = plan.run.resources.total or time
    if (
        predicted is None
        or train is None
        or time is None
        or time_in_all is None
        or predicted <= time_in_all.seconds
    ):
        return
    jobs = math.ceil(predicted / time.seconds)
    hours = train.step.launch.nodes * predicted / 3600
    whole = Duration(60 * round(predicted / 60)).short
    has = f"total is {time_in_all.short}" if time_in_all is not time else f"a job has {time.short}"
    yield Problem(
        code="unfinished",
        message=f"training takes {whole} as predicted, and {has}: {jobs} jobs of {time.short}, "
        f"{hours:,.0f} node-hours",
        where="resources.total" if time_in_all is not time else "resources.time",
        notes=(f"predicted at {predict.MFU:.0%} of the peak, which is assumed",),
        hint=f'total = "{Duration(jobs * time.seconds).short}"      (the jobs follow each other)',
        fatal=False,
    )


def _moving(plan: Plan) -> Iterator[Problem]:
    """Names that mean something else tomorrow: they are in the key, so they must be fixed first."""
    kinds = {kind: {p.name for p in plan.pins if p.kind == kind} for kind in ("git", "hub", "platform")}
    moving = [url for url, rev, _ in repositories(plan.run) if names.git(url, rev) not in kinds["git"]]
    moving += [row[0] for name, row in snapshots(plan.run).items() if name not in kinds["hub"]]
    moving += [a.url for a in plan.run.assets.values() if a.url and not a.sha256]
    if plan.cluster.arch == names.NATIVE and not kinds["platform"]:
        moving.append("this computer's architecture")
    built = [s.step.makes for s in plan.steps if s.step.makes and s.step.makes.role in ("env", "images")]
    environment = plan.run.environment
    packages = environment.packages or environment.compile or environment.requirements
    if packages and built and not any(artifact.pins for artifact in built):
        moving.append("the environment's packages")
    if moving:
        unique = list(dict.fromkeys(moving))
        yield Problem(
            code="not-pinned",
            message=f"not pinned: {', '.join(unique)}",
            hint='hpctrain lock      (an address is pinned by sha256 = "…")',
            fatal=False,
        )


def _roles(plan: Plan) -> Iterator[Problem]:
    """Words that name a storage role which this cluster has not: said before anything is written."""
    known_roles = {*plan.cluster.storage, RUNFILE}
    naming: dict[str, list[str]] = {}
    for planned in plan.steps:
        step, around = planned.step, planned.around
        lines = (step.commands, around.job, around.node, around.task, around.wrap)
        bodies = tuple(file.body for file in (*step.files, *around.files))
        values = tuple(variable.value for variable in around.env)
        artifact_roles = {step.makes.role} if step.makes else set()
        used = {loc.role for loc in locs_in((*lines, bodies, values))}
        for role in sorted((artifact_roles | used) - known_roles):
            naming.setdefault(role, []).append(planned.name)
    yield from (_no_role(plan, role, steps) for role, steps in naming.items())


def _cut(plan: Plan) -> Iterator[Problem]:
    """Folders of the user's own whose names a container's engine would take apart where they are bound."""
    paths = {f"assets.{name}.path": asset.path for name, asset in plan.run.assets.items()}
    if plan.run.code is not None:
        paths["code.path"] = plan.run.code.path
    suspects = {key: path for key, path in paths.items() if path.startswith("/") and re.search("[:,]", path)}
    if not suspects:
        return
    from shlex import quote  # few names have these signs

    in_options = words_in(tuple(planned.around.wrap for planned in plan.steps))
    in_files = words_in(tuple(file.body for planned in plan.steps for file in planned.around.files))
    for key, path in suspects.items():
        signs = ":," if path in in_options else ":" if path in in_files else ""
        if sign := next((sign for sign in signs if sign in path), ""):
            yield Problem(
                code="path-cut",
                message=f"{json.dumps(path, ensure_ascii=False)} cannot be seen in the container, "
                f'whose engine cuts it at "{sign}"',
                where=key,
                hint=f"ln -s {quote(path)} {quote(re.sub('[:,]', '_', path))}      (and name the link)",
            )


def _no_role(plan: Plan, role: str, steps: list[str]) -> Problem:
    from difflib import get_close_matches

    near = get_close_matches(role, plan.cluster.storage, 1)
    return Problem(
        code="role",
        message=f'{plan.cluster.name} has no storage role "{role}"',
        notes=(
            f"steps that name it: {', '.join(steps)}",
            f"roles: {' '.join(sorted(plan.cluster.storage))}",
        ),
        hint=f'Loc("{near[0]}")' if near else "",
    )


def _unused(plan: Plan) -> Iterator[Problem]:
    if plan.train is None:
        return
    makers = {s.name: s.step.makes.loc for s in plan.steps if s.step.makes}
    using = [s.step.commands for s in plan.steps if s.name != PROOF]
    read = set(_locs((plan.train, using)))
    for name in plan.run.assets:
        asset_loc = makers.get(name)
        if asset_loc is not None and not any(_below(loc, asset_loc) for loc in read):
            yield Problem(
                code="unused-asset",
                message=f"nothing reads the asset {name}",
                where=f"assets.{name}",
                fatal=False,
            )


def _locs(value: Any) -> list[Loc]:
    """Every location inside a value, attrs classes and mappings opened."""
    if attrs.has(type(value)) and not isinstance(value, Loc):
        parts = [getattr(value, field.name) for field in attrs.fields(type(value))]
        return locs_in(value) + [loc for part in parts for loc in _locs(part)]
    if isinstance(value, dict):
        return [loc for part in value.values() for loc in _locs(part)]
    if isinstance(value, (tuple, list)):
        return [loc for part in value for loc in _locs(part)]
    return locs_in(value)


def _below(loc: Loc, folder: Loc) -> bool:
    return loc.role == folder.role and f"{loc.path}/".startswith(f"{folder.path}/")


def unheard(cluster: Cluster) -> Iterator[Problem]:
    """A warning for each `ask` of the facts that has words, and none for the cluster's own scheduler."""
    tables = [
        *((f"queue.{queue.name}.ask", queue.ask) for queue in cluster.queue),
        *((f"place.{place.name}.ask", place.ask) for place in cluster.place),
        ("network.ask", cluster.network.ask),
    ]
    for where, ask in tables:
        if ask and cluster.scheduler not in ask:
            yield Problem(
                code="unknown-name",
                message=f"{cluster.name} speaks {cluster.scheduler}, and {where} has words for "
                f"{', '.join(sorted(ask))} alone: its jobs go without them",
                where=where,
                hint=_words_hint(cluster.scheduler, ask),
                fatal=False,
            )


def _words_hint(scheduler: str, ask: Mapping[str, tuple[str, ...]]) -> str:
    words = ", ".join(f'"{word}"' for word in next(iter(ask.values())))
    return f"ask = {{ {scheduler} = [{words}] }}"
