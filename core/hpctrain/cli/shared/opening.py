"""The options that open a run, shared by every command that reads a run file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError, HpctrainError, Problem
from hpctrain.hooks.scan import names
from hpctrain.plan.goal import Goal
from hpctrain.runfile.reading.find import find_run
from hpctrain.session import Session

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

if TYPE_CHECKING:
    from hpctrain.cli.typed import Typed


def run_options(function: F) -> F:
    """RUN_FILE, --on, --set and --account.

    Reading the file says what is wrong with it; `click.Path` would look for translations in 24 files first.
    """
    return layer_options(click.argument("run_file", required=False, type=Path)(function))


def layer_options(function: F) -> F:
    """--on, --set and --account."""
    for option in (
        click.option("--account", metavar="NAME", help="the account that jobs are charged to"),
        click.option(
            "--set", "sets", multiple=True, metavar="KEY=VALUE", help="override one key; the value is TOML"
        ),
        click.option(
            "--on", multiple=True, metavar="CLUSTER", help="another cluster; may be repeated, or `all`"
        ),
    ):
        function = option(function)
    return function


def open_session(
    run_file: Path | None,
    on: Sequence[str],
    sets: Sequence[str],
    account: str | None = None,
    goal: Goal | None = None,
) -> Session:
    """The session of a command that works on one cluster."""
    _remember(run_file, on, sets, account)
    clusters = expanded(on)
    if len(clusters) > 1:
        raise ConfigError.of("usage", "this command takes one --on", hint=f"--on {clusters[0]}")
    _say_where(run_file)
    return Session(run_file, on=clusters[0] if clusters else None, sets=sets, account=account, goal=goal)


def many(
    run_file: Path | None, on: Sequence[str], sets: Sequence[str], account: str | None = None
) -> Iterator[tuple[str, Session | HpctrainError]]:
    """A session for each cluster, or the error of one that refuses: it hurts no other."""
    _remember(run_file, on, sets, account)
    _say_where(run_file)
    for name in expanded(on) or [""]:
        yield name, attempted(partial(Session, run_file, on=name or None, sets=sets, account=account))


def attempted(make: Callable[[], T]) -> T | HpctrainError:
    """What is made, or the error that says why it cannot be."""
    try:
        return make()
    except HpctrainError as error:
        return error


def _remember(run_file: Path | None, on: Sequence[str], sets: Sequence[str], account: str | None) -> None:
    """What was typed, before anything can go wrong: the hint of an error leads to the same run."""
    context = click.get_current_context(silent=True)
    if context is None or not isinstance(context.obj, Out):
        return

    def typed() -> Typed:
        from hpctrain.cli.typed import Typed

        file = str(run_file) if run_file else ""
        return Typed(file=file, on=tuple(on), sets=tuple(sets), account=account or "")

    context.obj.typed = typed


def _say_where(run_file: Path | None) -> None:
    """A run file that was found in a folder above is named before anything in it is used."""
    out = click.get_current_context().obj
    if run_file is None and isinstance(out, Out):
        with contextlib.suppress(ConfigError):  # who reads it will say so
            path, _ = find_run(None, out.environ, Path.cwd())
            if path.parent != Path.cwd():
                out.say(f"run file  {path}")


def expanded(on: Sequence[str]) -> list[str]:
    """`--on all` as the installed clusters, `local` first."""
    for word in on:
        if "," in word:
            hint = " ".join(f"--on {part.strip()}" for part in word.split(",") if part.strip())
            raise ConfigError.of("usage", f"--on takes one cluster, not {word!r}; repeat it", hint=hint)
    if "all" not in on:
        return list(dict.fromkeys(on))
    return sorted(names("clusters"), key=lambda n: (n != "local", n))


def stop(problems: Sequence[Problem]) -> None:
    """Raise when one of the problems is fatal."""
    if any(p.fatal for p in problems):
        raise ConfigError(*problems)
