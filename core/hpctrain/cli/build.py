"""`hpctrain build`: the environment of a run and nothing else."""

from __future__ import annotations

from pathlib import Path

import click

from hpctrain.cli.opening import one, run_options
from hpctrain.cli.out import Out
from hpctrain.cli.part import part_options, prepare
from hpctrain.cli.submit import lock_first
from hpctrain.errors import ConfigError
from hpctrain.lock import rebuilt
from hpctrain.plan.goal import BUILD
from hpctrain.run import start
from hpctrain.runfile.keys import nearest
from hpctrain.runfile.stacks import same_name
from hpctrain.session import Session


@click.command("build")
@run_options
@click.option("--rebuild", multiple=True, metavar="PACKAGE", help="build it anew, under a new key; repeats")
@part_options
@click.pass_obj
def command(
    out: Out,
    run_file: Path | None,
    on: tuple[str, ...],
    sets: tuple[str, ...],
    account: str | None,
    rebuild: tuple[str, ...],
    locked: bool,
    wait: bool,
) -> int:
    """Build the environment of a run: here, or as jobs where it needs the target. What exists stays.

    --rebuild PACKAGE counts it up in the lock: a new key, so that nobody loses what they use.
    """
    session = one(run_file, on, sets, account, goal=BUILD)
    if rebuild:
        packages = [_package(session, name) for name in rebuild]
        tools = start.tools_for(session)
        lock_first(out, session, tools, locked=locked)
        start.write_pins(session, rebuilt(session.pins, packages))
    return prepare(out, session, locked=locked, wait=wait)


def _package(session: Session, said: str) -> str:
    """The package as the run knows it; ConfigError with the nearest name."""
    asked = session.run.environment
    named = [p.name for p in (*asked.packages, *asked.compile)]
    known = {same_name(n): n for n in (*named, *(p.name for p in session.pins if p.kind == "pypi")) if n}
    if same_name(said) in known:
        return known[same_name(said)]
    near = nearest(same_name(said), known)
    raise ConfigError.of(
        "unknown-package",
        f"{session.run.name} has no package {said!r}",
        where="environment.packages",
        hint=f"hpctrain build --rebuild {known[near[0]]}" if near else "",
    )
