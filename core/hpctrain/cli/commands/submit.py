"""`hpctrain submit`: build what is missing, then submit the jobs."""

from __future__ import annotations

from pathlib import Path

import click

from hpctrain.cli.out import Out
from hpctrain.cli.shared.data_checks import judge_data
from hpctrain.cli.shared.opening import open_session, run_options
from hpctrain.cli.shared.step_lines import StepLines
from hpctrain.cli.shared.submitting import begin, ended, lock_first


@click.command("submit")
@run_options
@click.option("--resume", is_flag=True, help="go on with the newest run of the same plan, where there is one")
@click.option("--locked", is_flag=True, help="refuse to pin anything that is not pinned yet")
@click.option("--wait", is_flag=True, help="wait for the jobs; exit 8 when one ends badly")
@click.pass_obj
def command(
    out: Out,
    run_file: Path | None,
    on: tuple[str, ...],
    sets: tuple[str, ...],
    account: str | None,
    resume: bool,
    locked: bool,
    wait: bool,
) -> int:
    """Lock what is not pinned, build what is missing here, submit the jobs with their dependencies."""
    session = judge_data(out, open_session(run_file, on, sets, account))
    session = lock_first(out, session, locked=locked)
    prepared = session.prepared()
    begin(out, prepared)
    with StepLines(out, len(prepared.plan.steps)) as step_lines:
        earlier = prepared.newest_run() if resume else None
        if earlier is None:
            run, outcome = prepared.submit(step_lines.tell)
        else:
            run, outcome = earlier, earlier.resume(step_lines.tell)
    return ended(out, run, outcome, wait=wait)
