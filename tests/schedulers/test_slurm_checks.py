"""Options of sbatch that would undo hpctrain's own are refused with the key to use."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from hpctrain.model.cluster import Queue
from hpctrain.model.run import Resources, RunSpec
from hpctrain.plugin import Cluster, Problem
from hpctrain_plugins.schedulers import slurm
from tests.schedulers import build
from tests.schedulers.build import cluster


def check_run(run: RunSpec, on: Cluster) -> list[Problem]:
    return slurm.check_run(attrs.evolve(build.plan(build.step()), run=run, cluster=on))


def codes(*words: str) -> list[tuple[str, str]]:
    run = RunSpec(name="r", cluster="c", resources=Resources(ask={"slurm": words}))
    return [(problem.code, problem.where) for problem in check_run(run, cluster())]


@pytest.mark.parametrize(
    "word",
    [
        "--job-name=x",
        "--job-name",
        "--job=x",
        "-Jx",
        "-J",
        "--comment=y",
        "--export=ALL",
        "--export=ALL,TOKEN",
        "--export-file=3",
        "--output=/tmp/x",
        "--out=/tmp/x",
        "-o/tmp/x",
        "-efile",
        "--account=other",
        "-A",
        "--dependency=singleton",
        "-dsingleton",
        "--chdir=/tmp",
        "-D/tmp",
        "--open-mode=truncate",
        "--parsable",
        "--wrap=id",
        "--array=1-4",
        "--nodes=9",
        "-N9",
        "--time=1-0",
        "-t10",
    ],
)
def test_what_would_undo_ours_is_refused(word: str) -> None:
    assert codes("--constraint=gpu", word) == [("scheduler-word", "resources.ask.slurm[1]")]


@pytest.mark.parametrize(
    "word",
    [
        *("--partition=debug", "-pdebug", "--qos=high", "-qhigh", "--constraint=gpu", "-Cgpu", "--exclusive"),
        *("--reservation=r", "--nodelist=n1", "-wn1", "--exclude=n2", "-xn2", "--mail-type=END", "--mem=0"),
        *("--mail-user=me@example.org", "--licenses=scratch", "--begin=now+1hour", "--time-min=10"),
        *("--no-requeue", "--network=x", "--gpu-freq=high", "--comments", "value", "x--time=1"),
    ],
)
def test_what_is_the_user_s_to_say_is_taken(word: str) -> None:
    assert codes(word) == []


def test_the_key_is_named() -> None:
    run = RunSpec(name="r", cluster="c", resources=Resources(ask={"slurm": ("--account=x", "--output=y")}))
    account, output = check_run(run, cluster())
    assert account.hint.startswith('account = "NAME"')
    assert output.hint == "remove '--output=y'"


@pytest.mark.parametrize(
    ("row", "counted"),
    [
        ({"ask": {"slurm": ("--constraint=gpu", "--qos=debug")}}, True),
        ({"ask": {"slurm": ("--partition=batch",)}}, True),
        ({}, True),
        ({"ask": {"slurm": ("-q", "debug")}}, False),
        ({"ask": {"slurm": ("--constraint=gpu",)}}, False),
        ({"ask": {"slurm": ("-q", "debug")}, "counts": ("--qos=gpu_debug",)}, True),
        ({"ask": {"slurm": ("--qos=debug",)}, "counts": ("gpu_debug",)}, False),
    ],
)
@pytest.mark.parametrize("limit", ["jobs_per_user", "jobs_per_project"])
def test_a_limit_that_no_answer_can_count_is_told(row: dict[str, Any], counted: bool, limit: str) -> None:
    facts: dict[str, Any] = {limit: 5, **row}
    queue = Queue(name="debug", source="doc", **facts)
    problems = check_run(RunSpec(name="r", cluster="c"), attrs.evolve(cluster(), queue=(queue,)))
    assert [(p.code, p.where, p.fatal) for p in problems] == (
        [] if counted else [("uncounted-limit", "queue.debug.counts", False)]
    )
    assert all(p.hint.startswith('counts = ["--qos=debug"]') for p in problems)
    unlimited = Queue(name="debug", source="doc", **row)
    assert check_run(RunSpec(name="r", cluster="c"), attrs.evolve(cluster(), queue=(unlimited,))) == []


@pytest.mark.parametrize(
    ("layout", "starter", "reason"),
    [
        ({}, ("--environment=/e.toml",), "srun starts the container of its ranks"),
        ({"bind": "closest"}, (), 'srun binds their GPUs (bind = "closest")'),
        ({"visible": "one"}, (), 'srun shows each its GPU (visible = "one")'),
        ({}, (), ""),
    ],
)
def test_spare_nodes_are_refused_where_srun_alone_can_start_the_ranks(
    layout: dict[str, Any], starter: tuple[str, ...], reason: str
) -> None:
    step = build.step(trains=True, **build.many(spare_nodes=1, **layout))
    made = build.plan(step, starter={"slurm": starter} if starter else {})
    made = attrs.evolve(made, run=attrs.evolve(made.run, resources=Resources(spare_nodes=1)))
    found = [problem for problem in slurm.check_run(made) if problem.code == "no-guards"]
    assert [problem.message.endswith(reason) for problem in found] == ([True] if reason else [])
