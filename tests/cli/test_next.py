"""`next:` and hints lead to the run that was opened: its file, cluster, account and overridden keys."""

from __future__ import annotations

import shlex

import click
import pytest

from hpctrain.cli.app import Commands
from hpctrain.cli.table import COMMANDS as TABLE
from hpctrain.cli.typed import COMMANDS, COMPARING, Typed
from tests.cli.terminal import on_terminal
from tests.e2e.product import Product, small

SET = 'train.command.argv=["echo", "a b"]'
OPTIONS = ("--on", "frontier", "--set", SET, "--account", "abc123")


def proposed(text: str, label: str) -> list[str]:
    """The words of the command behind `next:` or `help:`."""
    (line,) = [line for line in text.splitlines() if line.startswith(label)]
    return shlex.split(line.removeprefix(label))


def test_next_of_a_plan_submits_what_was_planned(here: Product) -> None:
    here.write(small("true"), "sub/run file.toml")
    screen = on_terminal(here, "plan", "sub/run file.toml", *OPTIONS, columns=200)
    assert proposed(screen, "next:") == ["hpctrain", "submit", "sub/run file.toml", *OPTIONS]


def test_the_hint_of_a_refused_submit_ejects_what_was_to_be_submitted(here: Product) -> None:
    here.write(small("true"))
    errors = here("submit", *OPTIONS, code=6).stderr
    assert shlex.split(errors.partition("or  ")[2]) == [
        "hpctrain", "eject", "run.toml", "--set", SET, "--account", "abc123", "--on", "frontier",
    ]  # fmt: skip
    (problem,) = here.json("submit", *OPTIONS, code=6)["problems"]
    assert "--account abc123" in problem["hint"]
    assert (
        "help: hpctrain lock run.toml --set name=x\n"
        in here("submit", "--locked", "--set", "name=x", code=2).stderr
    )


ON = Typed(on=("alps",))
FULL = Typed(file="a b.toml", on=("alps",), sets=("name=x y",), account="p1")
TWO = Typed(on=("alps", "olivia"))


@pytest.mark.parametrize(
    ("typed", "hint", "completed"),
    [
        (ON, "hpctrain lock      (again later)", "hpctrain lock --on alps      (again later)"),
        (ON, "hpctrain submit RUN_FILE --account ME", "hpctrain submit --on alps --account ME"),
        (ON, "hpctrain plan --json lists every name", "hpctrain plan --on alps --json lists every name"),
        (ON, "hpctrain exec -- true", "hpctrain exec --on alps -- true"),
        (ON, "hpctrain run --here      or  hpctrain submit",
         "hpctrain run --on alps --here      or  hpctrain submit --on alps"),
        (ON, "hpctrain eject run.toml --on olivia", "hpctrain eject run.toml --on olivia"),
        (ON, "hpctrain runs      (then wait)", "hpctrain runs      (then wait)"),
        (ON, "hpctrain submitted 3 jobs", "hpctrain submitted 3 jobs"),
        (ON, "hpctrain check --trainer neox FILE.yml", "hpctrain check --trainer neox FILE.yml"),
        (FULL, "hpctrain submit run.toml --account q2",
         "hpctrain submit 'a b.toml' --on alps --set 'name=x y' --account q2"),
        (TWO, "hpctrain lock", "hpctrain lock --on alps --on olivia"),
        (TWO, "hpctrain submit", "hpctrain submit"),
        (Typed(), "hpctrain submit RUN_FILE", "hpctrain submit"),
    ],
)  # fmt: skip
def test_a_proposed_command_gets_what_was_typed(typed: Typed, hint: str, completed: str) -> None:
    assert typed.completed(hint) == completed


def test_every_command_that_opens_a_run_is_completed() -> None:
    group, context = Commands("hpctrain"), click.Context(click.Command("hpctrain"))
    commands = {name: group.get_command(context, name) for name in TABLE if name not in ("demo", "data")}
    opening = {n for n, c in commands.items() if c and {"on", "sets"} <= {p.name for p in c.params}}
    assert opening == set(COMMANDS)
    assert set(COMPARING) < opening
