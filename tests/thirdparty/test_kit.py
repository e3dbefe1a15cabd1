"""Somebody else's cluster plugin passes the kit where it is installed, and fails it where it must."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.thirdparty.conftest import PLUGINS
from tests.thirdparty.scratch import HERE, Scratch, rewrite


def kit(installed: Scratch, *only: str, plugin: str = "hpctrain-lumi") -> tuple[set[str], str]:
    """The plugin's own tests, away from our configuration: those that fail, and all that pytest said."""
    folder = installed.folder / "kit" / plugin
    shutil.copytree(HERE / plugin / "tests", folder, dirs_exist_ok=True)
    argv = ("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", " or ".join(only), str(folder))
    done = installed.run(*argv, cwd=folder)
    return set(re.findall(r"^FAILED \S+::test_(\w+)", done.stdout, re.MULTILINE)), done.stdout + done.stderr


@pytest.mark.parametrize("plugin", PLUGINS)
def test_it_passes_from_its_wheel(installed: Scratch, plugin: str) -> None:
    failed, said = kit(installed, plugin=plugin)
    assert not failed, said
    assert re.search(r"^\d\d passed", said, re.MULTILINE), said


CODE = "hpc_lumi/__init__.py"
FACTS = "hpc_lumi/cluster.toml"
HOOK = "def configure_network(run: RunSpec, launch: Launch) -> Layer | None:\n"
RETURN = "    return Layer("
RAW = "    from hpctrain.model.words import Raw;"
SHAPES = "every_shape_plans"
VICES = {
    "reads a file": (
        CODE,
        HOOK,
        f"{HOOK}    open('/etc/hostname').read()\n",
        {"planning_touches_nothing"},
        "planning must not touch the world:",
    ),
    "starts a program": (
        *(CODE, HOOK, f"{HOOK}    __import__('os').system('true')\n"),
        {"planning_touches_nothing"},
        "planning must not touch the world:",
    ),
    "depends on who asks": (
        *(CODE, 'value="3"', 'value=__import__("os").environ.get("USER", "")'),
        {"the_same_plan_everywhere"},
        "two people get two plans:",
    ),
    "imports torch": (
        *(CODE, "HPCTRAIN_API = 1", "HPCTRAIN_API = 1\nimport sys\nsys.modules['torch'] = sys"),
        {"planning_imports_no_training_code"},
        "planning imports what only the job has:",
    ),
    "gives no reason": (
        *(CODE, 'why="one line for each kernel else"', 'why=""'),
        {"every_variable_says_who_and_why", SHAPES},
        "why is blank; say in a few words what MIOPEN_LOG_LEVEL is for",
    ),
    "speaks Slurm": (
        *(CODE, 'value="3"', 'value="$SLURM_PROCID"'),
        {"scheduler_words_stand_where_it_reads_them", SHAPES},
        "words of a scheduler outside `ask` and `starter`:",
    ),
    "leaves a placeholder": (
        CODE,
        'value="3"',
        'value="<your-value>"',
        {"nothing_is_left_to_fill_in"},
        "a placeholder that nobody will replace:",
    ),
    "breaks its own quotes": (
        *(CODE, RETURN, f"{RAW} return Layer(task=(Raw('echo \"'),),"),
        {"bash_can_read_every_script"},
        "bash cannot read what was rendered:",
    ),
    "runs what the user writes": (
        *(CODE, RETURN, f"{RAW} return Layer(task=(Raw(' '.join(['true', *run.env.values()])),),"),
        {"values_reach_the_program_as_they_are"},
        "a value was run as a command:",
    ),
    "is not dated": (
        FACTS,
        "2026-11-23",
        "2999-01-01",
        {"every_source_has_a_title_and_a_day_in_the_past"},
        "was checked on 2999-01-01, which is still to come",
    ),
    "has no title": (
        *(FACTS, '"Our own reading or memory, where no page says it"', '""'),
        {"every_source_has_a_title_and_a_day_in_the_past"},
        "[[source]] 'inferred' has no title",
    ),
    "has no address": (
        FACTS,
        'sure = "inferred"',
        'sure = "official"',
        {"every_official_source_has_an_address"},
        "[[source]] 'inferred' is official, but has no url",
    ),
    "has no reason for a fact": (
        FACTS,
        'why = "else TCP"',
        'why = ""',
        {"every_variable_has_a_reason"},
        "NCCL_NET has no why",
    ),
    "has no network": (
        *(FACTS, 'provides = ["network", "target"]', 'provides = ["target"]'),
        {"every_step_finds_a_place_and_every_file_a_role"},
        "no [[place]] provides 'network'",
    ),
    "has no place for runs": (
        *(FACTS, "[storage.runs]", "[storage.elsewhere]"),
        {"every_step_finds_a_place_and_every_file_a_role"},
        "no [storage.runs]; add it",
    ),
    "gives ranks more cores than there are": (
        *(FACTS, "cores_per_node = 56", "cores_per_node = 48"),
        {"a_node_has_the_cores_that_its_ranks_are_given"},
        "8 GPUs with 7 cores each are 56; a node has 48",
    ),
    "cannot be asked": (
        *(FACTS, 'command = "sinfo -h -o %R"', 'command = ""'),
        {"what_only_the_site_can_confirm_can_be_asked_there"},
        "has no command that asks for it",
    ),
    "cannot be parsed": (
        FACTS,
        'scheduler = "slurm"',
        'sheduler = "slurm"',
        {"the_plugin_loads"},
        'unknown key "sheduler"',
    ),
    "allows too little": (
        FACTS,
        'max_time = "2d"',
        'max_time = "10m"',
        {"every_example_plans"},
        "30m is longer than lumi allows for 2 nodes",
    ),
    "shows another file": (
        *("hpc_lumi/examples/two-nodes.toml", "# Your own", "# My own"),
        {"the_readme_shows_every_example"},
        "does not show two-nodes.toml as it is",
    ),
}


@pytest.mark.parametrize("vice", VICES)
def test_the_kit_catches_a_plugin_that(installed: Scratch, vice: str) -> None:
    name, old, new, caught, rule = VICES[vice]
    path = installed.site / name
    whole = path.read_text(encoding="utf-8")
    assert old in whole
    rewrite(path, whole.replace(old, new))
    try:
        failed, said = kit(installed, *caught)
    finally:
        rewrite(path, whole)
    assert caught == failed, said
    assert rule in said, said


def test_a_message_names_the_line_to_mend(installed: Scratch) -> None:
    path: Path = installed.site / FACTS
    whole = path.read_text(encoding="utf-8")
    line = whole.splitlines().index("[[source]]") + 1
    path.write_text(whole.replace("2026-11-23", "2999-01-01"), encoding="utf-8")
    try:
        _, said = kit(installed, "every_source_has_a_title")
    finally:
        path.write_text(whole, encoding="utf-8")
    assert f"{path}:{line}: [[source]] 'partitions' was checked on 2999-01-01, which is still to come" in said


def test_a_missing_role_is_one_failure(installed: Scratch) -> None:
    path: Path = installed.site / FACTS
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole.replace("[storage.runs]", "[storage.elsewhere]"), encoding="utf-8")
    try:
        failed, said = kit(installed, "TestLumi")
    finally:
        path.write_text(whole, encoding="utf-8")
    assert failed == {"every_step_finds_a_place_and_every_file_a_role"}, said
    assert "no [storage.runs]; add it" in said


def test_facts_that_cannot_be_read_are_one_failure(installed: Scratch) -> None:
    path: Path = installed.site / FACTS
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole.replace('scheduler = "slurm"', 'sheduler = "slurm"'), encoding="utf-8")
    try:
        failed, said = kit(installed, "TestLumi")
    finally:
        path.write_text(whole, encoding="utf-8")
    assert failed == {"the_plugin_loads"}, said
    assert "sheduler" in said, said
