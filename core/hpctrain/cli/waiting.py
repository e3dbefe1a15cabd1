"""Wait for a run's jobs, asking the scheduler no more often than the site wants."""

from __future__ import annotations

import time

from hpctrain.cli.out import Out
from hpctrain.errors import JobFailed
from hpctrain.model.job import State
from hpctrain.run import start
from hpctrain.run.directory import RunDirectory
from hpctrain.run.tools import Tools


def wait_for(out: Out, run: RunDirectory) -> None:
    """Until every step is over or waits for `continue`; JobFailed names the steps that ended badly."""
    graph = start.graph_of(run)
    hooks = start.scheduler_hooks(graph.scheduler, out.environ)
    tools = Tools(out.environ, keep=graph.submit_env)
    while True:
        states = start.states_of(run, graph, hooks, tools, out.environ)
        bad = [name for name, state in states.items() if state in (State.FAILED, State.CANCELLED)]
        if bad:
            raise JobFailed.of(
                "job-failed",
                f"{run.title}: step {bad[0]} {states[bad[0]].value}",
                notes=(f"log: {run.log(bad[0])}",),
                hint=f"hpctrain logs {run.title} {bad[0]}",
            )
        if all(state in (State.DONE, State.WAITING) for state in states.values()):
            return
        time.sleep(max(1, graph.poll_seconds))
