"""`hpctrain cancel`: end a run's jobs, those that run and those that wait."""

from __future__ import annotations

import click

from hpctrain.cli.out import Out
from hpctrain.run.find import open_run


@click.command("cancel")
@click.argument("run", required=False)
@click.pass_obj
def command(out: Out, run: str | None) -> int:
    """Cancel every job of RUN that has not ended; one that has ended is not an error."""
    live = open_run(run, out.environ)
    title, jobs = live.directory.title, live.jobs()
    if jobs and not out.confirm(f"cancel {len(jobs)} jobs of {title}?", default=True):
        return 0
    live.cancel(jobs)
    if out.flags.json:
        out.document("cancel", run=title, cancelled=jobs)
        return 0
    out.lines([f"{step}  job {job} is cancelled" for step, job in jobs.items()] or ["nothing was running"])
    return 0
