"""`hpctrain run --here`: the run in nodes that its user holds already."""

from __future__ import annotations

from pathlib import Path

import click

from hpctrain.cli.doing import Doing
from hpctrain.cli.opening import one, run_options
from hpctrain.cli.out import Out
from hpctrain.cli.submit import ended, lock_first
from hpctrain.errors import ConfigError
from hpctrain.run import inside, start
from hpctrain.session import Session


@click.command("run")
@run_options
@click.option("--here", is_flag=True, help="in the allocation that this shell is in")
@click.pass_obj
def command(
    out: Out,
    run_file: Path | None,
    on: tuple[str, ...],
    sets: tuple[str, ...],
    account: str | None,
    here: bool,
) -> int:
    """Do the whole run inside the nodes that you hold, one step after the other, and wait for its end.

    No job is submitted; on a login node it is refused.
    """
    if not here:
        raise ConfigError.of(
            "usage",
            "run works in an allocation that you hold; submit asks for one",
            hint="hpctrain run --here      or  hpctrain submit",
        )
    plain = one(run_file, on, sets, account)
    tools = start.tools_for(plain)
    mine = inside.found(plain, tools)
    session = Session(environ=plain.environ, raw=plain.raw, here=True)
    lock_first(out, session, tools, locked=False)
    out.warn((*start.judge(session, tools), *inside.judge(session, mine)))
    with Doing(out, len(session.plan().steps)) as doing:
        run, outcome = start.submit(session, tools, doing.tell, mine)
    return ended(out, run, outcome, wait=False, schema="run", then=f"hpctrain metrics {run.title}")
