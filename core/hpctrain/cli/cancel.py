"""`hpctrain cancel`: end a run's jobs, those that run and those that wait."""

from __future__ import annotations

import click

from hpctrain.cli.out import Out
from hpctrain.cli.runs_of import find
from hpctrain.run import start
from hpctrain.run.tools import Tools


@click.command("cancel")
@click.argument("run", required=False)
@click.pass_obj
def command(out: Out, run: str | None) -> int:
    """Cancel every job of RUN that is not over; a job that is over already is no error."""
    directory = find(run, out.environ)
    graph = start.graph_of(directory)
    hooks = start.scheduler_hooks(graph.scheduler, out.environ)
    tools = Tools(out.environ, keep=graph.submit_env)
    jobs = start.jobs_of(directory, graph, hooks, tools, out.environ)
    if jobs and not out.confirm(f"cancel {len(jobs)} jobs of {directory.title}?", default=True):
        return 0
    start.cancel(directory, hooks, tools, jobs)
    if out.flags.json:
        out.document("cancel", run=directory.title, cancelled=jobs)
        return 0
    out.lines([f"{step}  job {job} is cancelled" for step, job in jobs.items()] or ["nothing was running"])
    return 0
