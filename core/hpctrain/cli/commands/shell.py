"""`hpctrain shell`: an interactive bash on a compute node, inside the run's environment."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from hpctrain.cli.out import Out
from hpctrain.cli.shared.on_node import NodeRequest, NodeRun, below, hold, node_options
from hpctrain.errors import ConfigError, JobFailed, NotReachable
from hpctrain.model.duration import Duration
from hpctrain.plan.goal import SHELL
from hpctrain.run.prepare import goals
from hpctrain.run.steps.status import exit_record
from hpctrain.run.steps.submit import filled

USUAL = Duration.parse("1h")
LAST_WORD_SECONDS = 15.0
"""How long a job that was left may take to end by itself."""


@click.command("shell")
@node_options
@click.pass_obj
def command(out: Out, /, **options: Any) -> int:
    """Open a shell on a compute node, in the run's environment, in a job of its own.

    The job ends with the shell, and the shell with the job: a limit that was reached is said. What is
    missing of the environment is built first.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError.of("usage", "a shell needs a terminal", hint="hpctrain exec -- bash script.sh")
    request = NodeRequest(**options)
    session = request.session(
        USUAL,
        lambda plain, resources: goals.shell(
            resources, f"{plain.run.name} on {plain.cluster.name}", below(plain)
        ),
    )
    node_run = hold(out, session, SHELL)
    try:
        folder = node_run.run.step(SHELL)
        node_run.until_started(folder / "ready")
        if not (folder / "ready").exists():
            raise _ended(node_run)
        job = node_run.steps()[SHELL].job
        out.say(f"job {job}: the shell ends it; `exit` leaves")
        code = node_run.live.tools.terminal(
            _attach(node_run, job), cwd=node_run.run.path, env=_terminal(node_run)
        )
        if not _left(node_run):
            raise _ended(node_run)
    finally:
        node_run.end()
    return code


def _terminal(node_run: NodeRun) -> dict[str, str]:
    """What the way in sees: a container's description is found from the run's folder and may name it."""
    path = str(node_run.run.path)
    return {"TERM": node_run.out.environ.get("TERM", "dumb"), "HPC_RUN": path, "PWD": path}


def _attach(node_run: NodeRun, job: str) -> tuple[str, ...]:
    """The command that brings this terminal into the job, as the scheduler's plugin says it."""
    session = node_run.session
    planned = session.plan().step_named(SHELL)
    rendered = session.hooks.need("render_job", step=planned, plan=session.plan(), binding=session.binding)
    if rendered.attach is None:
        raise NotReachable.of(
            "no-terminal",
            f"{session.cluster.scheduler} cannot attach a terminal to a job",
            hint="hpctrain exec -- CMD",
        )
    words = (*rendered.attach, "/bin/bash", f"steps/{SHELL}/attach.sh", SHELL)
    values = {"HPC_JOB": job, "HPC_STEP": SHELL, "HPC_RUN": str(node_run.run.path)}
    return tuple(filled(word, values, session.binding) for word in words)


def _left(node_run: NodeRun) -> bool:
    """Whether the shell's user left, so that the job ended well; else the job went away under it."""
    end = time.monotonic() + LAST_WORD_SECONDS
    while time.monotonic() < end:
        ended = exit_record(node_run.run.path, SHELL)
        if ended is not None:
            return ended.code == 0
        time.sleep(0.2)
    return False


def _ended(node_run: NodeRun) -> JobFailed:
    """The job went away: why, as far as the scheduler says."""
    states = node_run.steps()
    node_run.refuse_failed(states)
    step_state = states[SHELL]
    why = step_state.reason or f"it is {step_state.state.value}"
    limit = node_run.session.plan().run.resources.time
    return JobFailed.of(
        "allocation-ended",
        f"the allocation ended under the shell: {why}",
        notes=(f"log: {node_run.run.log(SHELL)}",),
        hint=f"hpctrain shell --time {Duration(limit.seconds * 2).short}" if limit else "hpctrain shell",
    )
