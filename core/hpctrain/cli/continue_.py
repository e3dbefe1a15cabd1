"""`hpctrain continue`: go on with a run that waits for this node, was interrupted, or ended badly."""

from __future__ import annotations

import click

from hpctrain.cli.doing import Doing
from hpctrain.cli.out import Out
from hpctrain.cli.runs_of import find
from hpctrain.cli.submit import report
from hpctrain.run import start
from hpctrain.run.tools import Tools


@click.command("continue")
@click.argument("run", required=False)
@click.pass_obj
def command(out: Out, run: str | None) -> int:
    """Do what is left of RUN: steps that wait for this node, jobs that ended badly or were lost.

    The run goes on exactly as it was planned; what is made or submitted already is left alone.
    """
    directory = find(run, out.environ)
    graph = start.graph_of(directory)
    hooks = start.scheduler_hooks(graph.scheduler, out.environ)
    with Doing(out, len(graph.nodes)) as doing:
        outcome = start.go_on(
            directory, graph, hooks, Tools(out.environ, keep=graph.submit_env), out.environ, doing.tell
        )
    report(out, directory, outcome)
    return 0
