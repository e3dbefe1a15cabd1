"""What a plan says of a training of several jobs: who hands them over, and how often it should save."""

from __future__ import annotations

from collections.abc import Iterator

from hpctrain.model.plan import Plan, Survey
from hpctrain.plan import chain, interval
from hpctrain.ui import text


def lines(plan: Plan, survey: Survey) -> Iterator[str]:
    """None for a training of one job."""
    links = chain.of(plan)
    if links is None:
        return
    if plan.run.resources.is_chain:
        yield f"attempts: {', '.join(_attempts(plan, links))}"
    train = plan.step_named(chain.TRAIN)
    spares = train.step.launch.spare_nodes if train else None
    if spares:
        yield f"spare nodes: {', '.join(_spares(spares, links))}"
    advice = interval.advice(plan, survey.earlier)
    if advice is not None:
        yield f"checkpoints: {_checkpoints(plan, advice)}"


def _spares(spares: int, links: chain.Chain) -> Iterator[str]:
    hours = spares * links.attempts * links.time.seconds / 3600
    yield f"{spares} in each job" if links.attempts > 1 else str(spares)
    yield f"at most {hours:,.1f} node-hours"
    yield "for a node that dies or falls silent: the training goes on inside the job"


def _attempts(plan: Plan, links: chain.Chain) -> Iterator[str]:
    if links.requeue:
        yield f"one job, which is queued again until all {links.attempts} are done"
        return
    if not links.to_come:
        yield f"all {links.attempts} and a spare are handed over at once"
        return
    yield f"{links.links} of {links.attempts} are handed over at once"
    if links.hands_over:
        yield (
            f"{links.to_come} to come by the jobs themselves as they begin "
            f"(assumed: no page of {plan.cluster.name} forbids a job to submit another)"
        )
    else:
        yield f"{links.to_come} to come, each by hpctrain continue"


def _checkpoints(plan: Plan, advice: interval.Advice) -> str:
    every = plan.run.checkpoint.every
    asked = f"every {every.short}" if every else "as often as the trainer says"
    save = "measured" if advice.is_save_measured else "assumed"
    between = "measured" if advice.is_between_measured else "assumed"
    time = plan.run.resources.time
    is_rare = time is not None and advice.every_s >= time.seconds
    best = "once a job" if is_rare else text.duration(advice.every_s)
    return (
        f"{asked}; {best} recommended for "
        f"{text.duration(advice.save_s)} a save ({save}) "
        f"and one fault in {text.duration(advice.between_s)} ({between})"
    )
