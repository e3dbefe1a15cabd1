"""The options that open a run, shared by every command that reads a run file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError, HpctrainError, Problem
from hpctrain.hooks.scan import names
from hpctrain.plan.goal import Goal
from hpctrain.session import Session

F = TypeVar("F", bound=Callable[..., Any])


def run_options(function: F) -> F:
    """RUN_FILE, --on, --set and --account.

    Reading the file says what is wrong with it; `click.Path` would look for translations in 24 files first.
    """
    for option in (
        click.option("--account", metavar="NAME", help="what jobs are charged to"),
        click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="one key, as TOML"),
        click.option("--on", multiple=True, metavar="CLUSTER", help="another cluster; several, or all"),
        click.argument("run_file", required=False, type=Path),
    ):
        function = option(function)
    return function


def one(
    run_file: Path | None,
    on: Sequence[str],
    sets: Sequence[str],
    account: str | None = None,
    goal: Goal | None = None,
) -> Session:
    """The session of a command that works on one cluster."""
    clusters = expanded(on)
    if len(clusters) > 1:
        raise ConfigError.of("usage", "this command takes one --on", hint=f"--on {clusters[0]}")
    session = Session(run_file, on=clusters[0] if clusters else None, sets=sets, account=account, goal=goal)
    _say_where(session, run_file)
    return session


def many(
    run_file: Path | None, on: Sequence[str], sets: Sequence[str], account: str | None = None
) -> Iterator[tuple[str, Session | None, HpctrainError | None]]:
    """A session for each cluster; one that refuses is told with its error and hurts no other."""
    said = False
    for name in expanded(on) or [""]:
        try:
            session = Session(run_file, on=name or None, sets=sets, account=account)
        except HpctrainError as error:
            yield name, None, error
            continue
        if not said:
            _say_where(session, run_file)
        said = True
        yield name, session, None


def _say_where(session: Session, run_file: Path | None) -> None:
    """A run file that was found in a folder above is named, since nobody named it."""
    out = click.get_current_context().obj
    if run_file is None and session.raw.base != Path.cwd() and isinstance(out, Out):
        out.say(f"run file  {session.raw.path}")


def expanded(on: Sequence[str]) -> list[str]:
    """`--on all` as the installed clusters, `local` first."""
    for said in on:
        if "," in said:
            hint = " ".join(f"--on {part.strip()}" for part in said.split(",") if part.strip())
            raise ConfigError.of("usage", f"--on takes one cluster, not {said!r}; repeat it", hint=hint)
    if "all" not in on:
        return list(dict.fromkeys(on))
    return sorted(names("clusters"), key=lambda n: (n != "local", n))


def stop(problems: Sequence[Problem]) -> None:
    """Raise when one of the problems is fatal."""
    if any(p.fatal for p in problems):
        raise ConfigError(*problems)
