"""What else a plan can explain: the launch, queues, modules, and variables that are not set here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hpctrain.model.cluster import Queue
from hpctrain.model.network import TrainingVar
from hpctrain.model.plan import Plan, PlannedStep
from hpctrain.model.words import Word
from hpctrain.plan.words import word_text

LAUNCH, STARTUP, START = "launch", "startup", "start"


def about(plan: Plan, topic: str) -> Iterator[dict[str, Any]]:
    """Every entry about `topic`: a title and labelled rows."""
    if topic == START and plan.train is not None:
        yield _entry("start of training", _start(plan.train.start, plan))
    for step in plan.steps:
        yield from _about_step(plan, step, topic)
    for row in (*plan.cluster.var, *plan.cluster.network.var):
        if row.name == topic:
            yield _entry(f"{topic}   not set here", list(_absent(plan, row)))


def _about_step(plan: Plan, step: PlannedStep, topic: str) -> Iterator[dict[str, Any]]:
    if topic == LAUNCH and step.step.trains:
        yield _entry(f"launch of step {step.name}", _launch(step))
    if topic == STARTUP and step.step.trains:
        yield _startup(plan, step)
    if topic in (step.queue, "queue") and step.queue:
        yield _queue(plan, step)
    for module in step.around.modules:
        if topic == module.name:
            action = "before the step" if module.action == "load" else f"action {module.action}"
            yield _entry(f"module {module.name}", [("step", step.name), ("when", action)])
    if any(word_text(word) == topic for word in _started(plan, step)):
        yield _entry(topic, [("step", step.name), ("part of", "launch"), ("by", step.step.launch.source)])


def topics(plan: Plan) -> Iterator[str]:
    """The names that `about` answers."""
    yield from (LAUNCH, STARTUP, START)
    yield from (row.name for row in (*plan.cluster.var, *plan.cluster.network.var))
    for step in plan.steps:
        yield from (m.name for m in step.around.modules if m.name)
        yield from (word_text(word) for word in _started(plan, step))
        if step.queue:
            yield step.queue


def _started(plan: Plan, step: PlannedStep) -> tuple[Any, ...]:
    """The words around the start of the ranks that plugins brought."""
    return (*step.step.launch.prefix, *step.around.starter.get(plan.cluster.scheduler, ()))


def _entry(title: str, rows: list[tuple[str, str]]) -> dict[str, Any]:
    return {"kind": "about", "name": title, "rows": [list(row) for row in rows]}


def _start(start: Word, plan: Plan) -> list[tuple[str, str]]:
    """Where the first attempt starts, who says so, and what later ones do."""
    key = "checkpoint.start" if plan.run.checkpoint.start else "checkpoint.resume"
    origin = plan.origins.get(key)
    if start == "":
        return [("first attempt", "no checkpoint"), *_later(plan)]
    by = origin.label if origin else "the trainer's configuration"
    return [("first attempt", word_text(start)), ("by", by), *_later(plan)]


def _later(plan: Plan) -> list[tuple[str, str]]:
    never = plan.run.checkpoint.resume == "never"
    return [("later attempts", "as the first" if never else "the run's own newest whole checkpoint")]


def _launch(step: PlannedStep) -> list[tuple[str, str]]:
    launch = step.step.launch
    return [
        ("ranks", f"{launch.world}, {launch.ranks.value}, on {launch.nodes} nodes"),
        ("each node", f"{launch.gpus_per_node} GPUs, memory {launch.memory_gb or 'as the site gives'}"),
        ("each rank", f"{launch.cpus_per_rank} cores, sees {launch.visible} of the GPUs"),
        ("binding", launch.bind or "-"),
        ("prefix", " ".join(map(word_text, launch.prefix)) or "-"),
        ("by", launch.source),
    ]


def _startup(plan: Plan, step: PlannedStep) -> dict[str, Any]:
    from hpctrain.plan import startup  # only `--explain` of a start asks

    disk = any(storage.node_local for storage in plan.cluster.storage.values())
    return startup.entry(step.step.launch.nodes, _processes(step), node_disk=disk)


def _processes(step: PlannedStep) -> int:
    """Python processes of a node: one a GPU, whoever starts them."""
    launch = step.step.launch
    return max(1, launch.gpus_per_node, launch.ranks_per_node)


def _queue(plan: Plan, step: PlannedStep) -> dict[str, Any]:
    row = plan.cluster.queue_named(step.queue)
    rows = [("step", step.name)]
    if row is not None:
        source = plan.cluster.source_of(row.source)
        rows += [("nodes", _nodes(row)), ("longest", row.max_time.short if row.max_time else "no limit")]
        rows.append(("asks", " ".join(row.ask.get(plan.cluster.scheduler, ())) or "-"))
        rows += [("note", row.note)] if row.note else []
        rows += [("fact", f"{source.title}, {source.checked}")] if source else []
    rows.append(("change", "[resources] queue in the run file, or nodes and time"))
    return _entry(f"queue {step.queue}", rows)


def _nodes(row: Queue) -> str:
    return f"{row.min_nodes} to {row.max_nodes}" if row.max_nodes else f"{row.min_nodes} or more"


def _absent(plan: Plan, row: TrainingVar) -> Iterator[tuple[str, str]]:
    yield "because", _reason(plan, row)
    yield "value", row.value
    yield "why", row.why
    source = plan.cluster.source_of(row.source)
    if source is not None:
        yield "fact", f"{source.title}, {source.checked}"


def _reason(plan: Plan, row: TrainingVar) -> str:
    use = plan.run.environment.use
    if use in row.unless:
        return f"the environment technology {use} decides it itself"
    train = plan.step_named("train")
    when = {"many": "several nodes", "one": "one node", "all": "every training step"}[row.nodes]
    note = f"this run trains on {train.step.launch.nodes}" if train else "this run does not train"
    return f"it is for {when}; {note}"
