"""The run file that `init run` writes asks for what its cluster has."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain.cli.init import scaffold
from hpctrain.hooks.scan import names
from hpctrain.runfile.facts import load_cluster
from hpctrain.runfile.reading.toml import loads
from hpctrain.session import Session
from tests.e2e.product import Product, small


def test_a_run_on_this_computer_asks_for_no_gpus(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(scaffold.run_file("trl", "local"))
    session = Session(file, environ={"HOME": str(tmp_path)})
    assert session.run.resources.nodes == 1
    assert "one-node" not in [p.code for p in session.plan().problems]


def test_a_run_on_a_machine_with_gpus_asks_for_them() -> None:
    assert "\ngpus = 4 " in scaffold.run_file("trl", "alps")


def test_a_name_that_python_cannot_import_is_refused_with_one_that_it_can(here: Product) -> None:
    said = here("init", "plugin", "my-lumi", code=2).stderr
    assert "help: hpctrain init plugin my_lumi" in said
    assert here("init", "plugin", "my_lumi").stdout


@pytest.mark.parametrize("kind", ["environment", "scheduler", "trainer"])
def test_a_plugin_of_any_kind_is_a_small_distribution(here: Product, kind: str) -> None:
    here("init", "plugin", "oak", "--kind", kind)
    folder = here.folder / "hpctrain-oak"
    project = loads((folder / "pyproject.toml").read_text())["project"]
    assert project["entry-points"] == {f"hpctrain.{kind}s": {"oak": "hpctrain_oak"}}
    texts = {path: path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert not [path for path, text in texts.items() if "NAME" in text or "KIND" in text or "MORE" in text]
    assert sum(len(text.splitlines()) for text in texts.values()) < 220
    said = here("init", "plugin", "elm", "--kind", kind, "--like", "alps", code=2).stderr
    assert f"help: hpctrain init plugin elm --kind {kind}" in said


@pytest.mark.parametrize("like", ["alps", "frontier", "isambard", "leonardo", "local", "olivia"])
def test_no_source_of_a_new_plugin_is_official_without_an_address(tmp_path: Path, like: str) -> None:
    for path, text in scaffold.plugin("birch", scaffold.facts_like("birch", like)).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    facts = load_cluster(tmp_path / "hpc_birch")
    assert facts.name == "birch"
    assert not [s.id for s in facts.source if s.sure == "official" and not s.url]


def test_a_mistyped_set_names_the_key_in_its_table(here: Product) -> None:
    here.write(small("true"))
    assert "help: --set resources.nodes=1\n" in here("plan", "--set", "noodes=1", code=2).stderr
    assert "help: --set resources.nodes=1\n" in here("plan", "--set", "resources.noodes=1", code=2).stderr


@pytest.mark.parametrize("trainer", scaffold.trainers())
def test_every_line_that_may_be_uncommented_stands_where_it_belongs(here: Product, trainer: str) -> None:
    here("init", "run", "--trainer", trainer, "--on", "local")
    text = (here.folder / "run.toml").read_text()
    assert "\n# secrets = " in text
    here.write(text.replace("\n# secrets = ", "\nsecrets = "))
    assert here.json("check")["clusters"]["local"] is not None
    assert Session(here.folder / "run.toml", environ={"HOME": str(here.home)}).run.secrets == ("huggingface",)


def test_an_editor_gets_the_schema_that_the_first_line_names(here: Product) -> None:
    here("init", "run", "--on", "local", "-o", "run.toml")
    first = (here.folder / "run.toml").read_text().splitlines()[0]
    assert first.startswith("#:schema ./")
    schema = here.folder / first.removeprefix("#:schema ./")
    assert schema.read_text() == here("schema").stdout


@pytest.mark.parametrize("trainer", names("trainers"))
def test_there_is_a_run_file_for_every_trainer_and_it_plans(here: Product, trainer: str) -> None:
    here("init", "run", "--trainer", trainer)
    (problems,) = here.json("check")["clusters"].values()
    assert not [problem for problem in problems if problem["fatal"]]
    assert f'use = "{trainer}"' in (here.folder / "run.toml").read_text()


def test_an_example_brings_what_it_reads_and_overwrites_nothing(here: Product) -> None:
    here.write("mine\n", "nemotron.yaml")
    done = here("init", "run", "--example", "nemotron-lora", "-o", "first.toml")
    assert "nemotron.yaml exists and stays" in done.stderr
    assert (here.folder / "nemotron.yaml").read_text() == "mine\n"
    assert (here.folder / "chats.jsonl").stat().st_size
    (here.folder / "two").mkdir()
    here("init", "run", "--example", "isambard/two-nodes", "-o", "two/run.toml")
    assert list((here.folder / "two/regression").iterdir())
    mistyped = here("init", "run", "--example", "nemotron-lara", code=2).stderr
    assert "help: hpctrain init run --example nemotron-lora\n" in mistyped
    assert (
        "2 clusters have an example two-nodes" in here("init", "run", "--example", "two-nodes", code=2).stderr
    )


def test_a_shape_for_trl_is_a_model_from_nothing(here: Product) -> None:
    config = '\n[train.trl.config]\nmodel_type = "qwen3"\n'
    head = 'name = "a"\ncluster = "local"\nresources = { nodes = 1, time = "1h" }\n'
    here.write(head + '[train]\nuse = "trl"\n[train.trl]\nmethod = "pretrain"\n' + config)
    assert "help: from_scratch = true" in here("plan", code=2).stderr
