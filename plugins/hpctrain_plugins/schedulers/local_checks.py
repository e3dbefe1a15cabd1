"""What a run or a site says to a scheduler, and one computer has no use for: said, not dropped in silence."""

from __future__ import annotations

from collections.abc import Iterator

from hpctrain.plugin import Plan, PlannedStep, Problem

NAME = "local"


def problems(plan: Plan) -> Iterator[Problem]:
    """A warning for each, in the words of the key that says it."""
    if plan.run.resources.is_chain and plan.run.resources.requeue:
        yield Problem(
            code="scheduler-ignores",
            message="no process of this computer is queued again: the training would end after one attempt",
            where="resources.requeue",
            hint="requeue = false      (several processes, each behind the one before)",
        )
    if plan.run.resources.spare_nodes:
        yield Problem(
            code="no-guards",
            message="one computer has no spare node",
            where="resources.spare_nodes",
            hint="[on.CLUSTER.resources] spare_nodes = 1      (only where there are nodes)",
        )
    if plan.run.resources.mail and plan.train is not None:
        yield Problem(
            code="no-mail",
            message="this computer sends no mail about its jobs",
            where="resources.mail",
            hint="[on.CLUSTER.resources] mail = …      (only where mail is sent)",
        )
    jobs = tuple(planned for planned in plan.steps if not planned.here)
    for where in dict.fromkeys(_unread(plan, jobs)):
        yield Problem(
            code="scheduler-ignores",
            message=f"the jobs of this computer are processes: {where} changes nothing",
            where=where,
            fatal=False,
        )


def _unread(plan: Plan, jobs: tuple[PlannedStep, ...]) -> Iterator[str]:
    """The keys, as a run file or a cluster's facts spell them."""
    if plan.run.resources.ask.get(NAME):
        yield "resources.ask"
    for planned in jobs:
        launch, queue = planned.step.launch, plan.cluster.queue_named(planned.queue)
        if launch.memory_gb is not None:
            yield "resources.memory_gb"
        if launch.bind:
            yield "launch.bind"
        if launch.visible != "all":
            yield "launch.visible"
        if queue and queue.ask.get(NAME):
            yield f"queue.{queue.name}.ask"
        if _beyond(planned.around.ask.get(NAME, ()), plan.run.resources.ask.get(NAME, ())):
            yield f"the ask of step {planned.name}"
        if planned.around.starter.get(NAME):
            yield f"the starter of step {planned.name}"


def _beyond(words: tuple[object, ...], users: tuple[object, ...]) -> bool:
    """Whether a layer has words that the user did not give: theirs are named by their own key."""
    return any(word not in users for word in words)
