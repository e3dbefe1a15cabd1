"""Lists and tables that people write hold what the code holds, neither more nor less."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from hpctrain import errors
from hpctrain.cli.commands.help import sections
from hpctrain.cli.table import help_text
from hpctrain.hooks.scan import names
from hpctrain.session import Session
from hpctrain_job.signals import EXIT_SAVED
from hpctrain_trl import errors as of_trl
from tests.docs.parts import PLANNED
from tests.house.sources import ROOT, files
from tests.packaging.places import project

OF_PYTHON = {"HPCTRAIN_API"}
"""A name in modules, no variable of the environment."""


def rows(page: str, head: str) -> Iterator[list[str]]:
    """The cells of the table that begins with this head, row by row."""
    text = (ROOT / page).read_text(encoding="utf-8")
    table = text.partition(f"\n{head}\n")[2].partition("\n\n")[0]
    assert table, f"{page} has no table {head}"
    for line in table.splitlines()[1:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def words(cell: str) -> list[str]:
    """What stands in backquotes."""
    return re.findall(r"`([^`]+)`", cell)


def test_every_extra_is_in_the_readme() -> None:
    listed = [word for row in rows("README.md", "| extra | brings |") for word in words(row[0])]
    assert sorted(listed) == sorted(project("hpctrain")["optional-dependencies"])


def test_every_page_is_linked() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("hpc_*/README.md"), *ROOT.glob("bench/*.md")]
    pages += [ROOT / "plugins/README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
    assert len(pages) > 20
    assert not [p for p in pages if f"]({p.relative_to(ROOT)})" not in text]


def test_the_layers_of_a_run_stand_in_their_order(tmp_path: Path) -> None:
    settings, site, run = (tmp_path / f"{name}.toml" for name in ("settings", "site", "run"))
    settings.write_text("run = { checkpoint = { keep = 5 } }\n")
    site.write_text("[defaults.checkpoint]\nkeep = 4\n")
    run.write_text(PLANNED + "[on.alps]\ncheckpoint = { keep = 7 }\n")
    environ = {"HPCTRAIN_SETTINGS": str(settings), "HPCTRAIN_SITE": str(site)}
    session = Session(run, on="alps", sets=("checkpoint.keep=8",), environ=environ)
    layers = [tier.name for tier in (*session.facts.run_tiers, *session.source.tiers())]
    listed = [row[0] for row in rows("docs/layers-and-settings.md", "| layer | file | what it holds |")]
    expected = ["core", "cluster", "site", "settings", "run file", "`[on.CLUSTER]`", "`--set`", "`--on`"]
    assert listed == expected
    spelled = {
        "cluster.toml": "cluster",
        "on.alps": "`[on.CLUSTER]`",
        **{w: f"`{w}`" for w in ("--set", "--on")},
    }
    assert ["core", *(spelled.get(name, name) for name in layers)] == expected


def test_every_variable_of_ours_is_explained() -> None:
    text = "".join((ROOT / path).read_text(encoding="utf-8") for path in files(".py"))
    read = set(re.findall(r"[\"'](HPCTRAIN_[A-Z_]+)[\"']", text)) - OF_PYTHON
    table = rows("docs/layers-and-settings.md", "| variable | meaning |")
    listed = {word for row in table for word in words(row[0]) if word.startswith("HPCTRAIN_")}
    assert listed == read


def test_exit_codes_are_those_of_the_errors() -> None:
    classes = [c for c in vars(errors).values() if isinstance(c, type) and hasattr(c, "exit_code")]
    codes = {0, errors.INTERRUPTED, *(c.exit_code for c in classes)}
    section = sections()["exit-codes"]
    assert {int(n) for n in re.findall(r"^    (\d+) ", section, re.MULTILINE)} == codes
    help_line = help_text().partition("Exit codes:")[2].partition("`")[0]
    assert {int(n) for n in re.findall(r"\b(\d+) ", help_line)} == codes


def test_exit_codes_of_trl_are_its_own() -> None:
    codes = {0, EXIT_SAVED, *(value for name, value in vars(of_trl).items() if name.startswith("EXIT_"))}
    assert {int(row[0]) for row in rows("docs/trainers.md", "| exit code of `trl` | means |")} == codes


def test_every_stack_is_listed() -> None:
    modules = {name: import_module(f"hpctrain_plugins.trainers.{name}") for name in names("trainers")}
    stacks = {name: list(module.STACKS) for name, module in modules.items() if hasattr(module, "STACKS")}
    listed = {
        words(row[0])[0]: words(row[1]) for row in rows("docs/trainers.md", "| trainer | stacks | seen |")
    }
    assert listed == stacks


def test_variables_of_a_job_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(PLANNED)
    scripts = Session(path, environ={"HOME": str(tmp_path)}).files()
    of_a_job, of_a_rank, of_core = (
        {v for name in names for v in re.findall(r"\b(HPC_[A-Z_]+|WORK|PYTHONPATH)=", str(scripts[name]))}
        for names in (
            ["steps/train/job.sh"],
            ["steps/train/rank.sh"],
            ["steps/train/task.sh", "code/job.sh", "code/identity.sh"],
        )
    )
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    paragraph = text.partition("Variables in every job")[2].partition("\n\n")[0]
    listed = {v for cell in words(paragraph) for v in cell.split() if v.isupper()}
    in_one_that_makes = {"WORK", "HPC_STRIPE", "HPC_SHARE", "HPC_OWNERS"}  # read by code/publish.sh
    in_one_that_names_code = {"HPC_SOURCE"}  # plan/fact_layers.py; this trainer has none
    in_a_chain, of_command = {"HPC_STOP_FILE"}, {"HPC_START", "HPC_GLOBAL_BATCH_SIZE"}  # this one is neither
    of_slurm = {"HPC_BAD_NODES", "HPC_BAD_NODES_OWNERS"}  # plan/chain.py; on one computer there is one node
    of_others = in_one_that_makes | in_one_that_names_code | in_a_chain | of_command | of_slurm
    assert listed == of_a_job | of_a_rank | of_core | of_others
    text = (ROOT / "docs/writing-a-scheduler.md").read_text(encoding="utf-8")
    sentence = text.partition("The job's lines export")[2].partition(".")[0]
    by_scheduler = {v for cell in words(sentence) for v in cell.split()}
    of_a_rank -= {"HPC_PULSE", "PYTHONPATH"}  # core's own: of the watch for hangs
    assert of_a_rank < by_scheduler
    assert by_scheduler - of_a_rank < of_a_job
