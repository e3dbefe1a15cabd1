"""`hpctrain logs`: what a step printed; with -f as it is printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs
import click

from hpctrain.cli.out import Out
from hpctrain.cli.shared.following import Following
from hpctrain.cli.shared.survived import survived
from hpctrain.errors import ConfigError
from hpctrain.model.job import State
from hpctrain.run import logs
from hpctrain.run.directory import RunDirectory
from hpctrain.run.find import find
from hpctrain.run.live import LiveRun, steps_of
from hpctrain.run.status import SAVED

BAD = (State.FAILED, State.CANCELLED)
"""How a step ended badly."""


@click.command("logs")
@click.argument("run", required=False)
@click.argument("step", required=False)
@click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="go on until the step, or the run, is over; exit 8 when it ended badly",
)
@click.option("-n", "--lines", default=40, show_default=True, help="how many of the last lines")
@click.option("--rank", type=int, help="one rank's own log")
@click.option("--raw", is_flag=True, help="with escape codes, as they were written")
@click.pass_obj
def command(
    out: Out, run: str | None, step: str | None, follow: bool, lines: int, rank: int | None, raw: bool
) -> int:
    """Show the log of RUN's STEP: the last step that wrote one, rank 0 where there are several."""
    directory = _find_run(out, run)
    steps = logs.chosen_steps(steps_of(directory), step)
    if follow:
        written = [name for name in steps if logs.log_of(directory, name, rank)]
        first = written[-1] if written else steps[0]
        live = LiveRun.open(directory, out.environ)
        followed = steps[steps.index(first) :]
        tail(out, live, followed, rank, lines, raw)
        return _ended(live, followed)
    path = logs.newest_log(directory, steps, rank)
    out.lines(_cleaned(logs.last_lines(path, lines), raw, out))
    return 0


def _ended(live: LiveRun, followed: list[str]) -> int:
    """JobFailed where a step that was followed ended badly; the job's own word is the newest."""
    for step in live.status().steps:
        if step.step not in followed:
            continue
        failed = step.exit_code not in (None, 0, SAVED)
        if failed or step.state in BAD:
            from hpctrain.run import waiting

            ended = step if step.state in BAD else attrs.evolve(step, state=State.FAILED)
            raise waiting.failure(live.directory, ended, live.environ)
    return 0


def _find_run(out: Out, run: str | None) -> RunDirectory:
    """The run; the name of a step of the newest one is understood, and said as it is typed."""
    try:
        return find(run, out.environ)
    except ConfigError:
        newest = find(None, out.environ)
        if run not in steps_of(newest):
            raise
        message = f"no run {run!r}; it is a step of {newest.title}"
        raise ConfigError.of("no-run", message, hint=f"hpctrain logs {newest.title} {run}") from None


def tail(out: Out, live: LiveRun, steps: list[str], rank: int | None, lines: int, raw: bool) -> None:
    """Show one step after the other, as each begins to write; to the end of the run."""
    with survived(out, live.directory.title), Following(out, live) as follower:
        states = follower.watched.states
        for new_lines in logs.follow(live.directory, steps, states, rank=rank, lines=lines):
            if new_lines:
                follower.hide()
                out.lines(_cleaned(new_lines, raw, out))
            follower.tick()


def _cleaned(lines: Iterable[str], raw: bool, out: Out) -> Iterator[str]:
    """A line that was rewritten shows its last state; what a terminal would obey is taken out."""
    for line in lines:
        yield line.rstrip("\r\n") if raw else out.term.text(logs.last_state(line))
