"""The plans: every example and every shape fits, steps lie where they can run, variables are explained."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from hpctrain.errors import fatal
from hpctrain.model.plan import Plan, PlannedStep
from hpctrain.model.step import Need
from hpctrain.model.words import Cmd
from hpctrain.plan.encode import encode
from hpctrain.testing.base import Base, none
from hpctrain.testing.subject import Subject

SCHEDULER_WORDS = re.compile(
    r"SLURM_\w*|\b(?:sbatch|srun|scontrol|squeue|scancel|qsub|qdel)\b|#SBATCH|#?PBS_?\w*"
)
MAY_SAY = frozenset({"ask", "starter", "why", "source", "fact"})
"""Where a scheduler's words are at home, and what only explains."""

OF_THE_FACTS = frozenset({"uncounted-limit"})
"""Warnings that no user can mend: the cluster's facts are at fault."""

FETCH = frozenset({"curl", "wget", "git", "hf", "huggingface-cli", "rsync", "scp"})


class ExampleChecks(Base):
    """What the plan of every example must hold."""

    def test_every_example_plans(self, subject: Subject, example: Path) -> None:
        _fits(subject.plan(example), example)

    def test_every_variable_says_who_and_why(self, subject: Subject, example: Path) -> None:
        _is_explained(subject.plan(example))

    def test_scheduler_words_stand_where_it_reads_them(self, subject: Subject, example: Path) -> None:
        _knows_no_scheduler(subject.plan(example))

    def test_no_step_needs_a_network_where_there_is_none(self, subject: Subject, example: Path) -> None:
        _fetches_where_there_is_network(subject.plan(example))


class PlanChecks(ExampleChecks):
    """What planning must hold on every cluster."""

    def test_it_has_examples(self, subject: Subject) -> None:
        complaint = f"{subject.folder}: no examples/*.toml; a run file that plans is the best page"
        none([] if subject.examples else [complaint])

    def test_every_shape_plans(self, subject: Subject, shape: Path) -> None:
        plan = subject.plan(shape)
        _fits(plan, shape)
        _is_explained(plan)
        _knows_no_scheduler(plan)
        _fetches_where_there_is_network(plan)


def _fits(plan: Plan, run_file: Path) -> None:
    refused = [*fatal(plan.problems), *(p for p in plan.problems if p.code in OF_THE_FACTS)]
    wrong = [f"{p.where or p.code}: {p.message} (by {p.source or 'core'})" for p in refused]
    none(wrong, f"{run_file} does not fit {plan.cluster.name}:")
    train = plan.step_named("train")
    if train is None or train.here:
        none([f"{run_file}: nothing trains" if train is None else f"{run_file}: the login node would train"])


def _is_explained(plan: Plan) -> None:
    none(
        f"step {step.name}: {var.name} has no {' and no '.join(missing)}"
        for step in plan.steps
        for var in (*step.around.env, *step.around.lost)
        if (missing := [field for field in ("source", "why") if not getattr(var, field).strip()])
    )
    none(
        f"step {step.name}: {var.name} names {var.fact!r}, which is no [[source]] of cluster.toml"
        for step in plan.steps
        for var in step.around.env
        if var.fact and plan.cluster.source_of(var.fact) is None
    )


def _knows_no_scheduler(plan: Plan) -> None:
    complaints = [
        f"step {step.name}: {match.group()!r} in …{text[max(0, match.start() - 60) : match.end() + 40]}…"
        for step in plan.steps
        for text in [json.dumps(encode(step, MAY_SAY), ensure_ascii=False)]
        for match in SCHEDULER_WORDS.finditer(text)
    ]
    none(complaints, "words of a scheduler outside `ask` and `starter`:")


def _fetches_where_there_is_network(plan: Plan) -> None:
    none(
        f"step {s.name} runs in {s.step.place}, {complaint}"
        for s in plan.steps
        for complaint in _misplaced(s, plan)
    )


def _misplaced(step: PlannedStep, plan: Plan) -> Iterator[str]:
    place = plan.cluster.place_named(step.step.place)
    if place is None:
        yield "which is no [[place]] of cluster.toml"
    elif Need.NETWORK not in place.provides:
        if Need.NETWORK in step.step.needs:
            yield "which has no network, but needs it"
        programs = {
            c.argv[0] for c in step.step.commands if isinstance(c, Cmd) and isinstance(c.argv[0], str)
        }
        yield from (f"which has no network, but starts {name}" for name in sorted(programs & FETCH))
