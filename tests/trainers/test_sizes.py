"""The shape of a model from its `config.json`, wherever that is, and one step on any machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest

from hpctrain.defaults import model_configs as on_the_hub
from hpctrain.errors import Problem
from hpctrain.lock import Lock
from hpctrain.model.plan import Plan
from hpctrain.model.run import RunSpec
from hpctrain.model.step import CONFIG, Pin
from hpctrain.run.prepare.model_configs import model_configs
from hpctrain.session import Session
from hpctrain_job.arithmetic.model_shape import Shape
from hpctrain_plugins.trainers import automodel, command, nanotron, neox, trl
from tests.clusters.workspace import installed_workspace
from tests.trainers import plans
from tests.trainers.external import runs
from tests.trainers.test_shape import LLAMA_3_8B

CLUSTERS = ("alps", "frontier", "isambard", "leonardo", "olivia", "local")
RUN = """
name = "sizes"
cluster = "olivia"
[resources]
nodes = 2
time = "1h"
account = "nn9999k"
[environment]
stack = "2026-11"
[assets]
model = {{ {model} }}
dataset = {{ path = "data.jsonl" }}
[train]
use = "trl"
{batch}
[train.trl]
max_steps = 100
[checkpoint]
every = "30m"
{start}
"""


@pytest.fixture(scope="module", autouse=True)
def _workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The members of the workspace as if their wheels were installed."""
    with installed_workspace(tmp_path_factory.mktemp("site")):
        yield


def _session(folder: Path, on: str = "olivia", *, model: str, start: str = "", batch: str = "") -> Session:
    (folder / "data.jsonl").write_text('{"text": "x"}\n')
    (folder / "run.toml").write_text(RUN.format(model=model, start=start, batch=batch))
    return Session(folder / "run.toml", on=on, environ={"USER": "ada", "HOME": str(folder)})


def _model(folder: Path, **changes: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({**LLAMA_3_8B, **changes}))
    return folder


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_folder_here_says_the_size_on_every_cluster(cluster: str, tmp_path: Path) -> None:
    _model(tmp_path / "model")
    plan = _session(tmp_path, cluster, model='path = "model"').plan()
    assert plan.train is not None
    numbers = plan.train.numbers
    assert (numbers.parameters, numbers.active) == (8_030_261_248, None)
    sizes = (numbers.memory_gb, numbers.loading_gb, numbers.saving_gb, numbers.checkpoint_gb)
    assert all(size is not None and size > 16 for size in sizes)


def test_what_is_read_from_a_place_on_the_cluster_is_in_no_digest(tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    before = _session(tmp_path, model=f'path = "{place}"').plan()
    _model(place)
    after = _session(tmp_path, model=f'path = "{place}"').plan()
    assert before.train is not None
    assert after.train is not None
    assert before.train.numbers.parameters is None
    assert after.train.numbers.parameters == 8_030_261_248
    assert before.digest == after.digest


def test_the_lock_has_the_config_of_the_hub_and_no_hook_sees_it_as_a_pin(tmp_path: Path) -> None:
    session = _session(tmp_path, model='hub = "org/llama"')
    plain = session.with_pins((Pin("org/llama@main", "hub", "c" * 40),))
    known = session.with_pins((*plain.lock.pins, Pin("model", CONFIG, on_the_hub.line(LLAMA_3_8B))))
    assert known.pins == plain.pins
    assert known.plan().digest == plain.plan().digest
    numbers = [s.plan().train for s in (plain, known)]
    assert [n and n.numbers.parameters for n in numbers] == [None, 8_030_261_248]
    again = known.with_pins(known.lock.pins)
    assert again.lock.configs.keys() == {"model"}


def test_an_earlier_runs_checkpoint_says_it_too(tmp_path: Path) -> None:
    _model(tmp_path / "checkpoints/sft/3-4f1c9a2e/checkpoint-20", num_hidden_layers=16)
    _model(tmp_path / "checkpoints/sft/3-4f1c9a2e/model-of-nobody" / "deeper")
    run = plans.run("trl", trl.Options())
    start = attrs.evolve(run.checkpoint, start="{checkpoints.sft/3-4f1c9a2e}")
    configs = model_configs(attrs.evolve(run, checkpoint=start), {}, {}, tmp_path / "checkpoints")
    assert configs["checkpoint.start"]["num_hidden_layers"] == 16
    above = attrs.evolve(run.checkpoint, start="{checkpoints.sft/../sft}")
    assert not model_configs(attrs.evolve(run, checkpoint=above), {}, {}, tmp_path / "checkpoints")


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"model_type": ["llama"]}', "null"])
def test_what_is_no_configuration_says_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text(text)
    plan = _session(tmp_path, model='path = "model"').plan()
    assert plan.train is not None
    assert plan.train.numbers.parameters is None


@pytest.mark.parametrize(
    "changes",
    [
        {"num_hidden_layers": 10**12},
        {"hidden_size": -4096},
        {"hidden_size": "4096 or so"},
        {"num_attention_heads": 0},
        {"vocab_size": None},
        {"intermediate_size": [1]},
        {"hidden_size": float("inf")},
    ],
)
def test_a_hostile_configuration_has_no_shape(changes: dict[str, object]) -> None:
    assert Shape.of({**LLAMA_3_8B, **changes}) is None


def test_the_lock_keeps_plain_values_of_a_sane_length() -> None:
    kept = json.loads(on_the_hub.line({**LLAMA_3_8B, "rope": {"a": 1}, "auto_map": ["x"], "layers": [1, 2]}))
    assert kept == {**LLAMA_3_8B, "layers": [1, 2]}
    assert on_the_hub.line({**LLAMA_3_8B, "note": "x" * 5000}) == ""
    assert Lock(pins=(Pin("model", CONFIG, "{}"),), exists=True, stale=True).configs == {}


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_one_step_is_the_same_on_every_machine(cluster: str, tmp_path: Path) -> None:
    session = _session(tmp_path, cluster, model='hub = "org/llama"', batch="global_batch_size = 96")
    plan = session.plan()
    assert plan.train is not None
    numbers = plan.train.numbers
    assert (numbers.rows_per_step, numbers.tokens_per_step) == (96, 96 * 1024)
    assert not [problem for problem in plan.problems if problem.code == "global-batch"]


@pytest.mark.parametrize(
    ("rows", "micro", "gpus", "share"),
    [(64, 8, 4, (8, 1)), (256, 8, 4, (8, 4)), (24, 8, 4, (3, 1)), (72, 8, 4, (3, 3)), (8, 8, 4, (1, 1))],
)
def test_passes_follow_and_no_pass_is_larger_than_it_may_be(
    rows: int, micro: int, gpus: int, share: tuple[int, int]
) -> None:
    options = trl.Options(per_device_train_batch_size=micro)
    run = _with_rows(plans.run("trl", options), rows)
    found = trl.shared_out(run, plans.cluster(gpus))
    passes = (found.per_device_train_batch_size, found.gradient_accumulation_steps)
    assert passes == share
    assert passes[0] * passes[1] * gpus * 2 == rows


def _refusal(run: RunSpec) -> Problem:
    plan = Plan(run=run, cluster=plans.cluster(4), pins=(), steps=())
    (problem,) = (p for p in trl.check_run(run, plan.cluster, plan) if p.code == "global-batch")
    return problem


def test_rows_that_cannot_be_shared_are_refused_with_those_that_can() -> None:
    run = _with_rows(plans.run("trl", trl.Options()), 90)
    problem = _refusal(run)
    assert "90 rows a step cannot be shared out among 8 copies" in problem.message
    assert problem.hint.startswith("global_batch_size = 96")
    twice = _with_rows(plans.run("trl", trl.Options(gradient_accumulation_steps=4)), 96)
    problem = _refusal(twice)
    assert problem.where == "train.trl.gradient_accumulation_steps"


def test_a_command_gets_it_as_a_variable() -> None:
    run = _with_rows(plans.run("command", command.Options(argv=("python", "train.py"))), 96)
    train = command.train_command(run, plans.cluster(4), {}, {"model": LLAMA_3_8B})
    assert {v.name: v.value for v in train.layer.env}["HPC_GLOBAL_BATCH_SIZE"] == "96"
    assert (train.numbers.rows_per_step, train.numbers.parameters) == (96, 8_030_261_248)


def _with_rows(run: RunSpec, rows: int) -> RunSpec:
    return attrs.evolve(run, train=attrs.evolve(run.train, global_batch_size=rows))


EXTERNAL: tuple[tuple[ModuleType, dict[str, Any], tuple[tuple[str, ...], ...]], ...] = (
    (
        nanotron,
        {
            "tokens": {"sequence_length": 128, "micro_batch_size": 8, "train_steps": 10},
            "parallelism": {"dp": 8, "tp": 1, "pp": 1},
        },
        (("tokens", "micro_batch_size"), ("tokens", "batch_accumulation_per_replica")),
    ),
    (
        neox,
        {"train_micro_batch_size_per_gpu": 8, "seq_length": 128, "num_layers": 2, "hidden_size": 64},
        (("train_micro_batch_size_per_gpu",), ("gradient_accumulation_steps",)),
    ),
    (
        automodel,
        {
            "step_scheduler": {"local_batch_size": 8, "max_steps": 10},
            "packed_sequence": {"packed_sequence_size": 128},
        },
        (("step_scheduler", "local_batch_size"), ("step_scheduler", "global_batch_size")),
    ),
)


@pytest.mark.parametrize(("module", "settings", "keys"), EXTERNAL, ids=["nanotron", "neox", "automodel"])
def test_trainers_with_a_file_of_their_own_share_it_out_in_its_words(
    module: ModuleType, settings: dict[str, Any], keys: tuple[tuple[str, ...], ...]
) -> None:
    run = _with_rows(plans.run(module.__name__.rpartition(".")[2], module.Options(settings=settings)), 192)
    train = runs.train(module, run, 4)
    assert train.numbers.rows_per_step == 192
    name = next(file.path for file in train.layer.files if file.path.endswith((".yaml", ".yml")))
    values = runs.resolved(train, name)
    wanted = (8, 192) if module is automodel else (8, 3)
    for key, value in zip(keys, wanted, strict=True):
        table: Any = values
        for part in key:
            table = table[part]
        assert table == value
