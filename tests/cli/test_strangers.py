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
    assert "metrics is not a regular expression" not in done.stdout
    assert done.stderr.count("metrics is not a regular expression") == 1
    done = here("plan", "run.toml", "--json", code=2)
    assert json.loads(done.stdout)["schema"] == "hpctrain/plan/1"


def test_a_word_of_the_cluster_is_not_blamed_on_the_run_file(here: Product) -> None:
    here.write(small("true"))
    site = here.folder / "local.toml"
    site.write_text('operator = "us"\nscheduler = "slrum"\n')
    said = here("plan", "run.toml", code=2, HPCTRAIN_SITE=str(site)).stderr
    assert f"{site}:2:" in said
    assert 'help: scheduler = "slurm"\n' in said


def test_an_account_is_refused_where_it_stands(here: Product) -> None:
    here.write(small("true").replace("nodes = 1", 'nodes = 1\naccount = "my project"'))
    said = here("check", "run.toml", code=2).stderr
    assert 'error[account]: an account is one plain name, not "my project"' in said
    assert "run.toml:7:11" in said


def test_without_a_name_the_run_of_this_folder_is_meant(used: Product) -> None:
    other = used.home / "other"
    other.mkdir()
    there = attrs.evolve(used, folder=other)
    assert there("status").stdout.startswith("small/1")
    there.write(small("echo other").replace('"small"', '"small-two"'))
    for command in ("status", "logs", "metrics", "diagnose"):
        said = there(command, code=2).stderr
        assert "no run of small-two yet" in said, command
        assert "help: small/1 " in said, command
    there("submit", "run.toml", "--wait")
    assert there("status").stdout.startswith("small-two/1")
    assert used("status").stdout.startswith("small/1")


def test_a_part_of_a_run_is_a_run_of_its_file(here: Product) -> None:
    here.write(small("true"))
    here("exec", "run.toml", "--", "true")
    assert here("status").stdout.startswith("small-exec/1")


@pytest.mark.parametrize(
    ("typed", "help_line"),
    [
        (("--set", "resources.tiem=20m"), "help: --set resources.time=20m"),
        (("--set", "env.NCCL_CROSS_NIC=0"), """help: --set env.NCCL_CROSS_NIC='"0"'"""),
        (("--set", "resources.time=20"), 'help: --set resources.time=20m      also "1:30:00", "2d"'),
        (("--on", "frontir"), "help: --on frontier"),
    ],
)
def test_a_slip_on_the_command_line_is_corrected_there(
    here: Product, typed: tuple[str, ...], help_line: str
) -> None:
    here.write(small("true"))
    done = here("plan", *typed, code=2)
    assert help_line in done.stderr.splitlines()
    assert "unknown-stack" not in done.stderr


@pytest.mark.parametrize(
    ("method", "note"), [("qlora", "quantised"), ("dpo", '"neox"'), ("grpo", '"command"')]
)
def test_methods_of_other_tools_are_answered(here: Product, method: str, note: str) -> None:
    here.write(small("true"))
    sets = ("--set", "train.use=trl", "--set", f"train.trl.method={method}")
    assert note in here("plan", *sets, code=2).stderr
