"""Options of qsub that would undo hpctrain's own, and facts that PBS has no word for, are refused."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from hpctrain.errors import Problem
from hpctrain.model.duration import Duration
from hpctrain_plugins.schedulers import local
from hpctrain_plugins.schedulers.pbs import check_run
from tests.schedulers import build


def problems(*words: str, facts: dict[str, object] | None = None, **layout: object) -> list[Problem]:
    step = build.step("true", trains=True, **{**build.many(), **layout})
    plan = build.plan(step, on=build.cluster(**(facts or {})), ask=words, scheduler="pbs")
    return check_run(run=plan.run, cluster=plan.cluster, plan=plan)


@pytest.mark.parametrize(
    "word",
    [
        *("-N name", "-Nname", "-A other", "-o /tmp/x", "-e/tmp/x", "-j oe", "-k n", "-V", "-v A=1", "-I"),
        *("-J 0-9", "-z", "-f", "-C #HPC", "-S /bin/sh", "-W depend=afterok:1", "-Wblock=true"),
        *(
            "-l walltime=10:00:00",
            "-l select=9:ncpus=1",
            "-lnodes=2:ppn=4",
            "-l filesystems=home,walltime=1:0",
        ),
        *("-l ncpus=4", "-l ngpus=4", "-l mem=4gb", "-W umask=022,sandbox=PRIVATE"),
    ],
)
def test_what_would_undo_ours_is_refused(word: str) -> None:
    (problem,) = problems("-q debug", word)
    assert (problem.code, problem.where) == ("scheduler-word", "resources.ask.pbs[1]")
    assert problem.hint


@pytest.mark.parametrize(
    "word",
    [
        *("-q debug", "-P project", "-p 5", "-m abe", "-M me@example.org", "-r n", "-a 202701010000", "-h"),
        *(
            "-l place=scatter:excl",
            "-l filesystems=home:eagle",
            "-l software=x",
            "-W group_list=g",
            "-l pmem=1gb",
        ),
        *(":system=polaris", "value"),
    ],
)
def test_other_words_are_the_users(word: str) -> None:
    assert problems(word) == []


def test_a_word_of_ours_names_the_key_to_use() -> None:
    (problem,) = problems("-l walltime=10:00:00")
    assert problem.message == (
        "hpctrain gives qsub -l walltime itself: '-l walltime=10:00:00' would take its place"
    )
    assert problem.hint == 'time = "2h"      (in [resources])'


@pytest.mark.parametrize(
    ("facts", "layout", "where"),
    [
        ({}, {"bind": "closest"}, "launch.bind"),
        ({"gpu_request": "gres"}, {}, "launch.gpu_request"),
    ],
)
def test_a_fact_that_would_reach_no_job_is_an_error(
    facts: dict[str, object], layout: dict[str, object], where: str
) -> None:
    (problem,) = problems(facts=facts, **layout)
    assert (problem.code, problem.where, problem.fatal) == ("scheduler-fact", where, True)


@pytest.mark.parametrize(
    "check", [check_run, lambda plan, **_: local.check_run(plan=plan)], ids=["pbs", "local"]
)
def test_who_queues_no_job_again_refuses_it_for_a_training_of_several(check: Callable[..., object]) -> None:
    plan = build.plan(build.step("true", trains=True), time="1h")
    for total, count in ((None, 0), ("3h", 1)):
        asked = attrs.evolve(
            plan.run.resources, total=Duration.parse(total) if total else None, requeue=True, ask={}
        )
        plan = attrs.evolve(plan, run=attrs.evolve(plan.run, resources=asked))
        answers = check(run=plan.run, cluster=plan.cluster, plan=plan)
        refusals = [p for p in answers if p.fatal]  # type: ignore[attr-defined]
        assert [problem.where for problem in refusals] == ["resources.requeue"] * count
