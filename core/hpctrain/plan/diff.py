"""The same run on several clusters, side by side: only the rows that differ."""

from __future__ import annotations

from collections.abc import Iterable

from hpctrain.model.layer import Module
from hpctrain.model.plan import Plan, PlannedStep
from hpctrain.plan.words import line, word_text

Rows = list[tuple[str, list[str]]]


def diff(plans: Iterable[Plan]) -> tuple[Rows, list[str]]:
    """Rows that differ, with one cell a plan, and the names of those that are the same."""
    tables = [dict(_facts(plan)) for plan in plans]
    names = _in_order(tables)
    rows: Rows = []
    equal_names: list[str] = []
    for name in names:
        cells = [table.get(name, "-") for table in tables]
        if len(set(cells)) == 1:
            equal_names.append(name)
        else:
            rows.append((name, cells))
    return rows, equal_names


def _in_order(tables: Iterable[Iterable[str]]) -> list[str]:
    """Every name once; a name that only one plan has stands behind its neighbour there."""
    order: list[str] = []
    for table in tables:
        at = 0
        for name in table:
            if name not in order:
                order.insert(at, name)
            at = order.index(name) + 1
    return order


def _facts(plan: Plan) -> Iterable[tuple[str, str]]:
    hardware, train = plan.cluster.hardware, plan.step_named("train")
    if train is not None:
        launch = train.step.launch
        memory = f", {hardware.gpu_memory_gb:g} GB" if hardware.gpu_memory_gb else ""
        gpus = f"{launch.gpus_per_node} {hardware.gpu}{memory}"
        yield "nodes x GPUs", f"{launch.nodes} x {gpus if launch.gpus_per_node else 'CPU'}"
        queue = plan.cluster.queue_named(train.queue)
        if queue is not None:
            yield "queue", queue.name
            yield "longest job", queue.max_time.short if queue.max_time else "no limit"
        yield "ranks", f"{launch.world} {launch.ranks.value}, {launch.cpus_per_rank} cores each"
        yield "binding", launch.bind or "-"
        yield "launch prefix", " ".join(map(word_text, launch.prefix)) or "-"
    env = plan.run.environment
    yield "environment", f"{env.use or '-'} {env.python}".strip()
    yield from ((pin.name, pin.value.split()[0]) for pin in plan.pins if pin.kind == "pypi")
    yield "steps here", _names(s for s in plan.steps if s.here)
    yield "steps as jobs", _names(s for s in plan.steps if not s.here)
    for step in plan.steps:
        yield f"command of {step.name}", "; ".join(map(line, step.step.commands))
    if train is not None:
        yield from ((v.name, word_text(v.value)) for v in train.around.env)
        words = (*_queue_words(plan, train), *train.around.ask.get(plan.cluster.scheduler, ()))
        yield "scheduler words", " ".join(map(word_text, words)) or "-"
        starter = train.around.starter.get(plan.cluster.scheduler, ())
        yield "starter words", " ".join(map(word_text, starter)) or "-"
        yield "modules", " ".join(_module(m) for m in train.around.modules) or "-"
    yield "digest", plan.digest[:8]


def _queue_words(plan: Plan, step: PlannedStep) -> tuple[str, ...]:
    queue = plan.cluster.queue_named(step.queue)
    return queue.ask.get(plan.cluster.scheduler, ()) if queue else ()


def _module(module: Module) -> str:
    return module.name if module.action == "load" else f"{module.action} {module.name}".strip()


def _names(steps: Iterable[PlannedStep]) -> str:
    return " ".join(s.name for s in steps) or "-"
