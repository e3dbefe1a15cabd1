"""A plan as people read it: header, steps, numbers, variables, warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpctrain.cli.show.plan_numbers import numbers_of
from hpctrain.model.layer import How
from hpctrain.model.plan import Plan, PlannedStep, Survey
from hpctrain.plan import chain, predict
from hpctrain.plan.around import RUN_FILE
from hpctrain.plan.words import set_by, word_text
from hpctrain.ui import text
from hpctrain.ui.problem import brief
from hpctrain.ui.table import Column, Table, facts

if TYPE_CHECKING:
    from hpctrain.ui.term import Term

VARIABLE_LIMIT = 6
"""Variables in the short form; `--explain NAME` and `--json` give the rest."""


def plan_lines(plan: Plan, survey: Survey, term: Term, *, full: bool = False) -> list[str]:
    """All lines that `hpctrain plan` prints."""
    lines = [*term.wrapped(header(plan)), *steps(plan, survey).lines(term)]
    lines += [part for line in footer(plan, survey) for part in term.wrapped(line)]
    numbers = facts(tuple(numbers_of(plan, survey)), term)
    lines += ["", *numbers] if numbers else []
    train = plan.step_named("train")
    if train is not None and train.around.env:
        lines += ["", *variables(train, plan, term, full=full)]
    # What is fatal is shown whole below the page, and once.
    warnings = [line for p in plan.problems if not p.fatal for line in brief(p, term)]
    return [*lines, *([""] if warnings else []), *warnings]


def header(plan: Plan) -> str:
    """`guanaco-lora on frontier   16 GPUs (2 nodes), 1h30m      digest 4f1c9a2e`."""
    return f"{plan.run.name} on {plan.cluster.name}   {size_of(plan)}      digest {plan.digest[:8]}"


def size_of(plan: Plan) -> str:
    """How large the training is: `16 GPUs (2 nodes), 1h30m`, or `…, 10d in 10 jobs of 1d, 480 node-hours`."""
    train = next((s for s in plan.steps if s.step.trains), None)
    if train is None:
        count = len(plan.steps)
        return f"{count} step{'s' if count != 1 else ''}"
    launch, time = train.step.launch, plan.run.resources.time
    nodes = f"{launch.nodes} node{'s' if launch.nodes != 1 else ''}"
    gpus = launch.nodes * launch.gpus_per_node
    if launch.spare_nodes:
        nodes += f" and {launch.spare_nodes} spare"
    amount = f"{gpus} GPU{'s' if gpus != 1 else ''} ({nodes})" if gpus else nodes
    links = chain.of(plan)
    if links is not None and plan.run.resources.is_chain:
        hours = launch.job_nodes * links.attempts * links.time.seconds / 3600
        jobs = f"{links.total.short} in {links.attempts} {links.unit} of {links.time.short}"
        return f"{amount}, {jobs}, {text.count(round(hours))} node-hours"
    return f"{amount}, {time.short}" if time else amount


def steps(plan: Plan, survey: Survey) -> Table:
    """The table of a plan's steps, one row each."""
    table = Table(
        Column("#", right=True, drop=4),
        Column("STEP", style="name"),
        Column("PLACE"),
        Column("MAKES", drop=1),
        Column("NOW"),
        Column("ABOUT", right=True, drop=2),
        Column("SIZE", right=True, drop=3),
    )
    for number, item in enumerate(plan.steps, 1):
        artifact = item.step.makes
        weight = item.step.size_gb
        table.row(
            str(number),
            item.name,
            place(item),
            artifact.filename if artifact else "-",
            now(item, plan, survey),
            text.duration(item.step.minutes * 60),
            text.size(weight * 1e9) if weight is not None else "-",
        )
    return table


def place(item: PlannedStep) -> str:
    """`login`, or a job's queue with its nodes: `batch 2 nodes`."""
    if item.here:
        return item.step.place
    nodes = item.step.launch.job_nodes
    return f"{item.queue or item.step.place} {nodes} node{'s' if nodes != 1 else ''}"


def now(item: PlannedStep, plan: Plan, survey: Survey) -> str:
    """exists, with its owner where that is another user; build, job, waits, after N; `?` where this machine
    cannot know."""
    if not survey.is_on_cluster:
        return "?"
    if survey.artifact_exists.get(item.name):
        return f"exists ({survey.owners[item.name]})" if item.name in survey.owners else "exists"
    if item.name in survey.refusals:
        return f"refused ({survey.refusals[item.name].owner})"
    if item.waits:
        return "waits"
    jobs = [a.step for a in item.step.after if not _step(plan, a.step).here]
    if not item.here and jobs:
        numbers = [str(i) for i, s in enumerate(plan.steps, 1) if s.name in jobs]
        return f"after {numbers[-1]}"
    return "build" if item.step.makes else ("run" if item.here else "job")


def _step(plan: Plan, name: str) -> PlannedStep:
    planned = plan.step_named(name)
    assert planned is not None, name
    return planned


def footer(plan: Plan, survey: Survey) -> list[str]:
    """`here now: 1-4, about 22m, 32.0 GB (47.2 TB free); 3 jobs, 3.3 node-hours`."""
    parts = (_code(plan, survey), _earlier(survey), _work_left(plan, survey), _long_run(plan, survey))
    return [*(line for part in parts for line in part), *_avoided(plan, survey)]


def _avoided(plan: Plan, survey: Survey) -> list[str]:
    """`without nid005017: hung on 2026-11-24 at 02:14: …`, a line each."""
    lines = [f"without {node}: {why}" for node, why in survey.avoided.items()]
    if survey.bad_nodes:
        deaf = f"for {plan.cluster.scheduler} keeps no job away from nodes"
        why = deaf if survey.is_deaf else "for too few would be left"
        lines.append(f"used, though they failed, {why}: {' '.join(survey.bad_nodes)}")
    return [*lines, "all of them, and to forgive one: hpctrain nodes"] if lines else []


def _long_run(plan: Plan, survey: Survey) -> list[str]:
    """Of a training of several jobs: `attempts: …` and `checkpoints: …`."""
    if not plan.run.resources.is_chain and not plan.run.resources.spare_nodes:
        return []
    from hpctrain.cli.show import long_runs  # few runs have one

    return [*long_runs.lines(plan, survey)]


def _code(plan: Plan, survey: Survey) -> list[str]:
    """`code src: 3 files changed since commit 4f1c9a2e`."""
    if plan.run.code is None or survey.code is None:
        return []
    from hpctrain.run.prepare.code_state import described  # few runs have code of their own

    return [f"code {plan.run.code.path}: {described(survey.code)}"]


def _earlier(survey: Survey) -> list[str]:
    """`small/1 is the same plan, not finished, newest checkpoint at step 500: …`."""
    earlier = survey.earlier
    if earlier is None:
        return []
    saved = f", newest checkpoint at step {earlier.step}" if earlier.step is not None else ""
    if earlier.finished:
        return [f"{earlier.title} is the same plan, and finished{saved}"]
    return [f"{earlier.title} is the same plan, not finished{saved}: submit --resume goes on with it"]


def _work_left(plan: Plan, survey: Survey) -> list[str]:
    todo = [(n, s) for n, s in enumerate(plan.steps, 1) if not survey.artifact_exists.get(s.name)]
    local_steps = [(n, s) for n, s in todo if s.here and not s.waits]
    parts = []
    if not survey.is_on_cluster:
        parts.append(f"not on {plan.cluster.name}: what exists is not known here")
    elif local_steps:
        numbers, items = [n for n, _ in local_steps], [s for _, s in local_steps]
        parts.append(f"here now: {_local_summary(numbers, items, survey)}")
    cost = predict.cost(plan, [s for _, s in todo])
    if cost.jobs:
        jobs = f"{cost.jobs} job{'s' if cost.jobs != 1 else ''}"
        parts.append(f"{jobs}, at most {text.hours(cost.node_hours)} node-hours")
    return ["; ".join(parts)] if parts else ["everything is done already"]


def _local_summary(numbers: list[int], items: list[PlannedStep], survey: Survey) -> str:
    """Which steps run here now, how long they may take, what they fill."""
    minutes = sum(s.step.minutes for s in items)
    words = [_ranges(numbers), f"at most {text.duration(minutes * 60)}"]
    sizes = [s.step.size_gb for s in items if s.step.size_gb is not None]
    if sizes:
        roles = {s.step.makes.role for s in items if s.step.makes}
        free = [survey.free_gb[role] for role in roles if role in survey.free_gb]
        room = f" ({text.size(min(free) * 1e9)} free)" if free else ""
        words.append(f"{text.size(sum(sizes) * 1e9)}{room}")
    return ", ".join(words)


def _ranges(numbers: list[int]) -> str:
    """Numbers as text, with neighbours as a range: `1-3,5`."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    return ",".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in ranges)


def variables(item: PlannedStep, plan: Plan, term: Term, *, full: bool) -> list[str]:
    """The table of a step's variables: value, who set it, where."""
    env = item.around.env
    table = Table(Column("NAME", style="name"), Column("VALUE"), Column("SET BY"), Column("WHERE", drop=1))
    ordered = sorted(env, key=lambda v: _LOUD.get(v.source, 0))
    for var in ordered if full else ordered[:VARIABLE_LIMIT]:
        value = "(unset)" if var.how is How.UNSET else word_text(var.value)
        table.row(var.name, value, set_by(plan, var), var.at.value)
    title = f"variables of step {item.name} ({len(env)}; one in full: plan --explain NAME)"
    hidden_count = len(env) - VARIABLE_LIMIT
    hidden_lines = [f"{term.mark} {hidden_count} more"] if hidden_count > 0 and not full else []
    return [*term.wrapped(title), *table.lines(term), *hidden_lines]


_LOUD = {RUN_FILE: -1, "core": 1}
"""What the user set is shown first, what core sets for everybody last."""
