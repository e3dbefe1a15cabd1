"""`hpctrain run --here`: the run in nodes that its user holds already."""

from __future__ import annotations

from pathlib import Path

import click

from hpctrain.cli.out import Out
from hpctrain.cli.shared.data_checks import judge_data
from hpctrain.cli.shared.opening import open_session, run_options
from hpctrain.cli.shared.step_lines import StepLines
from hpctrain.cli.shared.submitting import ended, lock_first
from hpctrain.errors import ConfigError
from hpctrain.run import inside


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
            "run works inside an allocation; submit asks for one",
            hint="hpctrain run --here      or  hpctrain submit",
        )
    session = open_session(run_file, on, sets, account)
    allocation = session.allocation()
    prepared = lock_first(out, judge_data(out, session.on_node()), locked=False).prepared()
    out.warn((*prepared.judge(), *inside.judge(prepared, allocation)))
    with StepLines(out, len(prepared.plan.steps)) as step_lines:
        run, outcome = prepared.submit(step_lines.tell, allocation)
    then = f"hpctrain metrics {run.directory.title}"
    return ended(out, run, outcome, wait=False, schema="run", then=then)
