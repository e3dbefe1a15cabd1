"""`hpctrain shell`: an interactive bash on a compute node, inside the run's environment."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from hpctrain.cli.on_node import Asked, Held, below, hold, node_options
from hpctrain.cli.out import Out
from hpctrain.errors import ConfigError, JobFailed, NotReachable
from hpctrain.model.duration import Duration
from hpctrain.plan.goal import SHELL
from hpctrain.run import goals
from hpctrain.run.status import exit_record
from hpctrain.run.submit import filled

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
    asked = Asked(**options)
    session = asked.session(
        USUAL,
        lambda plain, resources: goals.shell(
            resources, f"{plain.run.name} on {plain.cluster.name}", below(plain)
        ),
    )
    held = hold(out, session, SHELL)
    try:
        folder = held.run.step(SHELL)
        held.until_started(folder / "ready")
        if not (folder / "ready").exists():
            raise _ended(held)
        job = held.steps()[SHELL].job
        out.say(f"job {job}: the shell ends it; `exit` leaves")
        code = held.tools.terminal(_attach(held, job), cwd=held.run.path, env=_terminal(held))
        if not _left(held):
            raise _ended(held)
    finally:
        held.end()
    return code


def _terminal(held: Held) -> dict[str, str]:
    """What the way in sees: a container's description is found from the run's folder and may name it."""
    path = str(held.run.path)
    return {"TERM": held.out.environ.get("TERM", "dumb"), "HPC_RUN": path, "PWD": path}


def _attach(held: Held, job: str) -> tuple[str, ...]:
    """The command that brings this terminal into the job, as the scheduler's plugin says it."""
    session = held.session
    planned = session.plan().step_named(SHELL)
    rendered = session.hooks.need("render_job", step=planned, plan=session.plan(), binding=session.binding)
    if rendered.attach is None:
        raise NotReachable.of(
            "no-terminal",
            f"{session.cluster.scheduler} has no way to bring a terminal into a job",
            hint="hpctrain exec -- CMD",
        )
    words = (*rendered.attach, "/bin/bash", f"steps/{SHELL}/attach.sh", SHELL)
    values = {"HPC_JOB": job, "HPC_STEP": SHELL, "HPC_RUN": str(held.run.path)}
    return tuple(filled(word, values, session.binding) for word in words)


def _left(held: Held) -> bool:
    """Whether the shell's user left, so that the job ended well; else the job went away under it."""
    end = time.monotonic() + LAST_WORD_SECONDS
    while time.monotonic() < end:
        found = exit_record(held.run.path, SHELL)
        if found is not None:
            return found.code == 0
        time.sleep(0.2)
    return False


def _ended(held: Held) -> JobFailed:
    """The job went away: why, as far as the scheduler says."""
    found = held.steps()
    held.refuse_failed(found)
    mine = found[SHELL]
    why = mine.reason or f"it is {mine.state.value}"
    asked = held.session.plan().run.resources.time
    return JobFailed.of(
        "allocation-ended",
        f"the allocation ended under the shell: {why}",
        notes=(f"log: {held.run.log(SHELL)}",),
        hint=f"hpctrain shell --time {Duration(asked.seconds * 2).short}" if asked else "hpctrain shell",
    )
