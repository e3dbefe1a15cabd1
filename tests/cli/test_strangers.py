"""What strangers typed first: the answer says what to type."""

from __future__ import annotations

import json

import attrs
import pytest

from tests.e2e.product import Product, small


@pytest.fixture
def used(here: Product) -> Product:
    """A user with one finished run."""
    here.write(small("echo hello"))
    here("submit", "run.toml", "--wait")
    return here


def test_a_rank_that_does_not_exist(used: Product) -> None:
    run = next(used.home.glob(".local/share/hpctrain/runs/small/1-*"))
    for rank in (0, 1, 3):
        (run / f"logs/train.rank{rank}.log").write_text("x\n")
    said = used("logs", "small", "--rank", "5", code=2).stderr
    assert "train of small/1 has no log of rank 5" in said
    assert "ranks: 0-1 3" in said
    assert "hpctrain logs small/1 train --rank 3" in said


def test_a_step_where_a_run_is_meant(used: Product) -> None:
    said = used("logs", "train", code=2).stderr
    assert "help: hpctrain logs small/1 train\n" in said
    assert "hpctrain runs" in used("logs", "nope", code=2).stderr


def test_clusters_with_a_comma(here: Product) -> None:
    here.write(small("true"))
    said = here("plan", "run.toml", "--on", "local,frontier", code=2).stderr
    assert "help: --on local --on frontier\n" in said


def test_a_run_file_found_above_is_named_once(here: Product) -> None:
    here.write(small("true"))
    below = here.folder / "a" / "b"
    below.mkdir(parents=True)
    file = str(here.folder / "run.toml")
    assert file not in here("plan").stderr
    there = attrs.evolve(here, folder=below)
    assert f"run file  {file}\n" in there("plan").stderr
    assert there("plan", "--on", "local", "--on", "frontier").stderr.count(file) == 1


def test_what_is_fatal_is_shown_once(here: Product) -> None:
    here.write(small("true").replace("argv", "metrics = '('\nargv"))
    done = here("plan", "run.toml", code=2)
    assert "metrics is no regular expression" not in done.stdout
    assert done.stderr.count("metrics is no regular expression") == 1
    done = here("plan", "run.toml", "--json", code=2)
    assert json.loads(done.stdout)["schema"] == "hpctrain/plan/1"
