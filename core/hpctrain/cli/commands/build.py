"""`hpctrain build`: build the environment of a run and nothing else."""

from __future__ import annotations

from pathlib import Path

import click

from hpctrain.cli.out import Out
from hpctrain.cli.shared.opening import open_session, run_options
from hpctrain.cli.shared.part import part_options, prepare
from hpctrain.cli.shared.submitting import lock_first
from hpctrain.errors import ConfigError
from hpctrain.lock import rebuilt
from hpctrain.plan.goal import BUILD
from hpctrain.runfile.keys import nearest
from hpctrain.runfile.stacks import same_name
from hpctrain.session import Session


@click.command("build")
@run_options
@click.option(
    "--rebuild", multiple=True, metavar="PACKAGE", help="rebuild it under a new key; may be repeated"
)
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
    session = open_session(run_file, on, sets, account, goal=BUILD)
    if rebuild:
        packages = [_package(session, name) for name in rebuild]
        session = lock_first(out, session, locked=locked)
        session = session.with_pins(rebuilt(session.lock.pins, packages))
    return prepare(out, session, locked=locked, wait=wait)


def _package(session: Session, word: str) -> str:
    """The package as the run knows it; ConfigError with the nearest name."""
    environment = session.run.environment
    named = [p.name for p in (*environment.packages, *environment.compile)]
    names_by_key = {
        same_name(n): n for n in (*named, *(p.name for p in session.pins if p.kind == "pypi")) if n
    }
    if same_name(word) in names_by_key:
        return names_by_key[same_name(word)]
    near = nearest(same_name(word), names_by_key)
    raise ConfigError.of(
        "unknown-package",
        f"{session.run.name} has no package {word!r}",
        where="environment.packages",
        hint=f"hpctrain build --rebuild {names_by_key[near[0]]}" if near else "",
    )
