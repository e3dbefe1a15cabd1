"""The run file that `init run` writes asks for what its cluster has."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpctrain.cli import scaffold
from hpctrain.runfile.facts import load_cluster
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


@pytest.mark.parametrize("like", ["alps", "frontier", "isambard", "leonardo", "local", "olivia"])
def test_no_source_of_a_new_plugin_is_official_without_an_address(tmp_path: Path, like: str) -> None:
    for path, text in scaffold.plugin("birch", like).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    facts = load_cluster(tmp_path / "hpc_birch")
    assert facts.name == "birch"
    assert not [s.id for s in facts.source if s.sure == "official" and not s.url]


def test_a_mistyped_set_names_the_key_in_its_table(here: Product) -> None:
    here.write(small("true"))
    assert "help: resources.nodes\n" in here("plan", "--set", "noodes=1", code=2).stderr
    assert "help: nodes\n" in here("plan", "--set", "resources.noodes=1", code=2).stderr
