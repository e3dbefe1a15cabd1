"""`hpctrain continue`: go on with a run that waits for this node, was interrupted, or ended badly."""

from __future__ import annotations

import click

from hpctrain.cli.out import Out
from hpctrain.cli.shared.step_lines import StepLines
from hpctrain.cli.shared.submitting import report
from hpctrain.run.find import open_run


@click.command("continue")
@click.argument("run", required=False)
@click.pass_obj
def command(out: Out, run: str | None) -> int:
    """Do what is left of RUN: steps that wait for this node, jobs that ended badly or were lost.

    The run goes on exactly as it was planned; what is made or submitted already is left alone.
    """
    live = open_run(run, out.environ)
    with StepLines(out, len(live.graph.nodes)) as step_lines:
        outcome = live.resume(step_lines.tell)
    report(out, live.directory, outcome)
    return 0
