"""What a plan says of time: predicted, measured by the site, and as an earlier run of the same plan took."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from hpctrain.cli.show.plan_numbers import numbers_of
from hpctrain.model.plan import EarlierRun, Plan, Survey
from hpctrain.plan import predict
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.prepare.earlier import newest
from hpctrain.session import Session

EXAMPLES = Path(__file__).parents[2] / "hpc_alps/hpc_alps/examples"


@pytest.fixture(scope="module")
def plan() -> Plan:
    """The Alps document's training of 109 M weights."""
    environ = {"USER": "ada", "HOME": "/users/ada"}
    return Session(EXAMPLES / "nanotron-wikitext.toml", account="g1", environ=environ).plan()


def sized(plan: Plan, parameters: int) -> Plan:
    """The plan of a model of another size."""
    assert plan.train is not None
    numbers = attrs.evolve(plan.train.numbers, parameters=parameters)
    return attrs.evolve(plan, train=attrs.evolve(plan.train, numbers=numbers))


@pytest.mark.parametrize(
    ("parameters", "model"),
    [(109_000_000, "llama3-8b"), (8_000_000_000, "llama3-8b"), (30_000_000_000, "llama3-70b")],
)
def test_the_site_s_measurement_of_the_nearest_size_stands_beside(
    plan: Plan, parameters: int, model: str
) -> None:
    measured = predict.reference(sized(plan, parameters))
    assert measured is not None
    assert measured.model == model
    shown = dict(numbers_of(sized(plan, parameters), Survey(is_on_cluster=False)))["measured"]
    assert shown.startswith(
        "440 TFLOP/s a GPU, 44% of peak, 7,600" if model == "llama3-8b" else "420 TFLOP/s"
    )
    assert ("smaller models reach less" in shown) == (parameters < 10**9)
    document = predict.document(sized(plan, parameters))
    assert document is not None
    assert document["reference"]["model"] == model


@pytest.mark.parametrize(("parameters", "is_bound"), [(109_000_000, True), (8_000_000_000, False)])
def test_of_a_small_model_it_is_a_lower_bound(plan: Plan, parameters: int, is_bound: bool) -> None:
    shown = dict(numbers_of(sized(plan, parameters), Survey(is_on_cluster=False)))["time"]
    assert shown.startswith("at least ") == is_bound


def test_a_machine_without_measurements_says_nothing(plan: Plan) -> None:
    bare = attrs.evolve(plan, cluster=attrs.evolve(plan.cluster, reference=()))
    assert "measured" not in dict(numbers_of(bare, Survey(is_on_cluster=False)))


def test_what_an_earlier_run_took_comes_first(plan: Plan) -> None:
    earlier = EarlierRun(title="small/1", finished=False, step=500, step_s=0.4)
    shown = dict(numbers_of(plan, Survey(is_on_cluster=True, earlier=earlier)))["time"]
    assert shown.startswith("10m, as small/1 trained (0.4 s a step); at least 29s predicted")


def test_the_pace_is_read_from_the_run_s_own_metrics(plan: Plan, tmp_path: Path) -> None:
    session = Session(EXAMPLES / "nanotron-wikitext.toml", account="g1", environ={"HOME": str(tmp_path)})
    contents = {"plan.json": "{}", "graph.json": "{}"}
    run = RunDirectory.create(tmp_path, plan.run.name, plan.digest, contents)
    binding = attrs.evolve(session.binding, roots={**session.binding.roots, "runs": str(tmp_path)})
    before = newest(plan, binding)
    assert before is not None
    assert before.step_s is None
    rows = (f'{{"step": {n}, "loss": 2.0, "time": {1000 + n * 0.5}}}\n' for n in range(1, 9))
    run.metrics.write_text("".join(rows))
    after = newest(plan, binding)
    assert after is not None
    assert after.step_s == 0.5
