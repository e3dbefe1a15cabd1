"""Help is short, static and true; completion scripts parse; mistakes on the line get a near answer."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from hpctrain import cli
from hpctrain.cli.app import Commands
from hpctrain.cli.table import COMMANDS, PLUGIN_COMMANDS, help_text
from tests.e2e.product import Product
from tests.patience import PATIENCE

OWN = [name for name in COMMANDS if name not in PLUGIN_COMMANDS]
SHELLS = {"bash": ("bash", "-n"), "zsh": ("zsh", "-n"), "fish": ("fish", "-n")}


def command_of(name: str) -> click.Command:
    found = Commands("hpctrain").get_command(click.Context(click.Command("hpctrain")), name)
    assert found is not None
    return found


def test_the_static_help_is_the_table() -> None:
    assert (Path(cli.__file__).with_name("help.txt")).read_text(encoding="utf-8") == help_text()
    assert max(map(len, help_text().splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_fits(name: str) -> None:
    command = command_of(name)
    said = command.get_help(click.Context(command, info_name=f"hpctrain {name}", max_content_width=80))
    assert max(map(len, said.splitlines())) <= 80
    first = (command.help or "").splitlines()[0]
    assert first[0].isupper()
    assert 20 < len(first) <= 110
    for option in command.params:
        if isinstance(option, click.Option) and option.name not in ("folder", "target", "trainer"):
            assert option.help, f"{name} {option.opts}"


def test_help_and_version_import_nothing(here: Product) -> None:
    for args in ((), ("--help",), ("-h",), ("--version",)):
        done = here(*args, PYTHONPROFILEIMPORTTIME="1")
        assert done.stdout
        loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
        assert not loaded & {"click", "attrs", "attr", "cattrs", "pluggy", "yaml", "hpctrain.cli.app"}


def test_a_commands_help_both_ways(here: Product) -> None:
    long, short = here("plan", "--help").stdout, here("plan", "-h").stdout
    assert long == short
    assert "--explain" in long
    assert here("help", "plan").stdout.splitlines()[1:] == long.splitlines()[1:]
    assert here("help").stdout == here("--help").stdout


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        *(("statsu", "hpctrain status"), ("plna", "hpctrain plan"), ("sumbit", "hpctrain submit")),
        *(("sbatch", "hpctrain submit"), ("qstat", "hpctrain runs")),
        *(("qlora", "hpctrain init run"), ("cost", "hpctrain plan")),
    ],
)
def test_an_unknown_command_names_the_nearest(here: Product, typed: str, meant: str) -> None:
    said = here(typed, code=2).stderr
    assert said == f"error[usage]: no command {typed!r}\nhelp: {meant}\n"


def test_an_unknown_option_names_the_nearest(here: Product) -> None:
    said = here("plan", "--explian", "x", code=2).stderr
    assert said == "error[usage]: plan has no option --explian\nhelp: hpctrain plan --explain\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_parses(here: Product, shell: str) -> None:
    script = here("completion", shell).stdout
    assert all(name in script for name in OWN)
    path = here.write(script, f"complete.{shell}")
    if shutil.which(SHELLS[shell][0]) is None:
        pytest.skip(f"{shell} is not installed: its script was not read")
    subprocess.run((*SHELLS[shell], str(path)), check=True, timeout=10 * PATIENCE)


def test_a_tab_starts_no_python(here: Product) -> None:
    here.write(here("completion", "bash").stdout, "complete.bash")
    line = ". ./complete.bash; COMP_WORDS=(hpctrain stat); COMP_CWORD=1; _hpctrain; echo ${COMPREPLY[*]}"
    done = subprocess.run(
        ("/bin/bash", "-c", line), cwd=here.folder, env={"PATH": "/nowhere"}, capture_output=True, text=True,
        timeout=10 * PATIENCE, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["status"]


def test_schema_is_json(here: Product) -> None:
    schema = json.loads(here("schema").stdout)
    assert {"resources", "environment", "train"} <= set(schema["properties"])
