"""One run on several clusters: what it needs and costs on each, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hpctrain.cli.show.plan_text import size_of
from hpctrain.errors import HpctrainError
from hpctrain.model.plan import Plan
from hpctrain.model.train import Numbers
from hpctrain.plan import predict
from hpctrain.ui import text
from hpctrain.ui.table import Column, Table
from hpctrain.ui.term import Term


def lines(plans: Mapping[str, Plan], refused: Mapping[str, HpctrainError], term: Term) -> Iterator[str]:
    """A row for each cluster, then why one refuses, and what each trains on where that is not the same."""
    yield from _table(plans, refused).lines(term)
    reasons = {name: reason for name, plan in plans.items() if (reason := _refusal(plan))}
    reasons |= {name: str(error) for name, error in refused.items()}
    if reasons:
        yield ""
        for name, reason in reasons.items():
            yield from term.wrapped(f"{name}: {reason}")
    for line in _unequal(plans):
        yield ""
        yield from term.wrapped(line)


def _table(plans: Mapping[str, Plan], refused: Mapping[str, HpctrainError]) -> Table:
    table = Table(
        Column("CLUSTER", style="name"),
        Column("FITS"),
        Column("ASKS"),
        Column("GB A GPU", right=True),
        Column("TOKENS", right=True),
        Column("TIME", right=True),
        Column("JOBS", right=True),
        Column("NODE-HOURS", right=True),
        Column("GB A NODE", right=True, drop=3),
        Column("QUEUE", drop=2),
        Column("DIGEST", drop=1),
    )
    for name, plan in plans.items():
        fits = ("error", "no") if _refusal(plan) else ("ok", "yes")
        table.row(name, fits, size_of(plan), *_numbers(plan), plan.digest[:8])
    for name in refused:
        table.row(name, ("error", "no"), *"-" * 9)
    return table


def _numbers(plan: Plan) -> tuple[str, ...]:
    """Memory of a GPU, tokens of a step, predicted time, jobs and node-hours to the end, memory of a node,
    queue."""
    numbers = plan.train.numbers if plan.train else Numbers()
    seconds, train = predict.seconds(plan), plan.step_named("train")
    cost = predict.cost(plan, plan.steps)
    host = max((gb for gb in (numbers.loading_gb, numbers.saving_gb) if gb is not None), default=None)
    return (
        _of(_gpu_gb(numbers), plan.cluster.hardware.gpu_memory_gb),
        text.count(numbers.tokens_per_step) if numbers.tokens_per_step else "-",
        text.duration(seconds, rough=True) if seconds is not None else "-",
        str(max(cost.jobs, predict.jobs(plan, seconds or 0))),
        text.hours(max(cost.node_hours, predict.node_hours(plan, seconds or 0))),
        _of(host, plan.cluster.hardware.memory_gb),
        train.queue if train and train.queue else "-",
    )


def _gpu_gb(numbers: Numbers) -> float | None:
    return None if numbers.memory_gb is None else numbers.memory_gb + (numbers.activations_gb or 0)


def _of(needed: float | None, has: float) -> str:
    """`38/64`."""
    if needed is None:
        return "-"
    return f"{needed:.3g}/{has:g}" if has else f"{needed:.3g}"


def _refusal(plan: Plan) -> str:
    return next((problem.message for problem in plan.problems if problem.fatal), "")


def _unequal(plans: Mapping[str, Plan]) -> Iterator[str]:
    """Where one step is not the same everywhere, another experiment is run under the same name."""
    steps = {
        name: plan.train.numbers.tokens_per_step
        for name, plan in plans.items()
        if plan.train and plan.train.numbers.tokens_per_step
    }
    if len(set(steps.values())) > 1:
        sizes = ", ".join(f"{text.count(tokens)} on {name}" for name, tokens in steps.items())
        yield (
            f"the same file trains on other steps: {sizes} tokens each; "
            "global_batch_size in [train] makes them the same"
        )
