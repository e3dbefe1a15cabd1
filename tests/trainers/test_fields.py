"""A field that the data lacks is refused where the data is staged, in the trainer's own words."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from hpctrain.model.run import Asset
from hpctrain.run.steps.execute import refusals
from hpctrain_job.tables.columns import of
from hpctrain_plugins.trainers import trl
from hpctrain_plugins.trainers.trl import Options
from tests.conftest import ROOT
from tests.trainers import plans

PAIRS = {"train_source_field": "nb", "train_target_field": "nn"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder as the hub's snapshots are, with train and validation data."""
    for name, row in {"train": {"nb": "a", "nn": "b"}, "validation": {"nb": "a", "nn_husnorm": "b"}}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    return tmp_path


def checked(folder: Path, **settings: str) -> tuple[int, str]:
    """The step's command, as the login node starts it: no library but ours."""
    (folder / "fields.json").write_text(json.dumps(settings))
    argv = (sys.executable, "-I", "-S", "-c", START, str(folder / "fields.json"))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


START = f"""
import sys
sys.path += [{str(ROOT / "core")!r}, {str(ROOT / "plugins")!r}]
from hpctrain_trl import fields
sys.exit(fields.main())
"""


def test_right_fields_pass(data: Path) -> None:
    both = {"train_dataset": f"{data}/train:train", "eval_dataset": f"{data}/validation"}
    assert checked(data, **both, **PAIRS, eval_target_field="nn_husnorm", eval_source_field="nb") == (0, "")


def test_a_wrong_field_is_one_sentence_with_its_key_and_the_nearest(data: Path) -> None:
    both = {"train_dataset": f"{data}/train:train", "eval_dataset": f"{data}/validation:validation"}
    code, said = checked(data, **both, **PAIRS, eval_source_field="nb", eval_target_field="nn_husnrm")
    assert code == 78
    (problem,) = refusals(said.splitlines())
    assert (problem.code, problem.where) == ("step-refused", "train.trl.eval_target_field")
    assert problem.message == "the evaluation data has no field nn_husnrm"
    assert problem.hint == 'eval_target_field = "nn_husnorm"'
    assert problem.notes == (f"{data}/validation has: nb, nn_husnorm",)


def test_every_wrong_field_is_said_at_once(data: Path) -> None:
    both = {"train_dataset": f"{data}/train", "eval_dataset": f"{data}/validation"}
    code, said = checked(data, **both, train_source_field="no", train_target_field="nn")
    assert code == 78
    found = [(p.where, p.message) for p in refusals(said.splitlines())]
    assert found == [
        ("train.trl.train_source_field", "the training data has no field no"),
        ("train.trl.train_source_field", "the evaluation data has no field no"),
        ("train.trl.train_target_field", "the evaluation data has no field nn"),
    ]


def test_data_of_no_form_says_what_was_looked_for(data: Path) -> None:
    code, said = checked(data, train_dataset=f"{data}/train")
    assert code == 78
    assert "the training data has none of: prompt and completion, messages, text" in said
    code, said = checked(data, train_dataset=f"{data}/train", method="pretrain", text_field="innhold")
    assert code == 78
    assert "  where: train.trl.text_field" in said


@pytest.mark.parametrize("name", ["org/name:train", "/not/there", "{}/odd"])
def test_what_cannot_be_judged_here_is_left_to_the_trainer(data: Path, name: str) -> None:
    (data / "odd").mkdir()
    (data / "odd/x.arrow").write_bytes(b"ARROW1")
    assert checked(data, train_dataset=name.format(data), **PAIRS) == (0, "")


def test_the_plan_asks_for_data_that_is_brought_and_for_no_other() -> None:
    def step(**options: Any) -> Any:
        run = plans.run("trl", Options(**options))
        assets = {**run.assets, "mine": Asset(use="arrow")}
        return trl.train_command(attrs.evolve(run, assets=assets), plans.cluster(4), plans.ASSETS, {}).before

    (found,) = step(train_dataset="demo/train.jsonl", eval_dataset="dataset", **PAIRS)
    assert (found.name, found.inside, found.needs, found.after) == ("fields", False, frozenset(), ())
    assert step(train_dataset="demo", **PAIRS) == step(train_dataset="mine") == ()


COMPARE = """
import json, sys
import datasets
datasets.disable_progress_bars()
found = {}
for name in sys.argv[1:]:
    rows = datasets.load_dataset(name, cache_dir=sys.argv[1] + "/../cache")
    found[name] = sorted({c for split in rows.values() for c in split.column_names})
print(json.dumps(found))
"""


def test_the_library_that_trains_names_the_same_columns(torch_python: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    make = (
        "import datasets, sys; d = datasets.Dataset.from_dict({'nb': ['a', 'b'], 'nn': ['c', 'd'], "
        "'deep': [{'x': [1], 'y': {'z': 'e'}}] * 2, 'messages': [[{'role': 'user', 'content': 'f'}]] * 2})\n"
        "for k in ('parquet', 'json', 'csv'): getattr(d, f'to_{k}')(f'{sys.argv[1]}/{k}/train.{k}')"
    )
    env = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    given: dict[str, Any] = {"check": True, "capture_output": True, "text": True, "timeout": 300, "env": env}
    subprocess.run([torch_python, "-c", make, str(made)], **given)
    names = [str(made / kind) for kind in ("parquet", "json", "csv")]
    done = subprocess.run([torch_python, "-c", COMPARE, *names], **given)
    there = json.loads(done.stdout.splitlines()[-1])
    assert {name: sorted(set().union(*of(Path(name)))) for name in names} == there
    assert all(columns == ["deep", "messages", "nb", "nn"] for columns in there.values())
