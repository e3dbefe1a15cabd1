"""`hpctrain logs`: what a step printed; with -f as it is printed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import attrs
import click

from hpctrain.cli.out import Out
from hpctrain.cli.shared.following import Following
from hpctrain.cli.shared.survived import survived
from hpctrain.errors import ConfigError
from hpctrain.model.job import State
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.find import find
from hpctrain.run.live import LiveRun, steps_of
from hpctrain.run.output import logs, placed
from hpctrain.run.output.growing import every_line
from hpctrain.run.steps.status import BAD
from hpctrain_job.exit_codes import SAVED


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
@click.option("--node", metavar="NAME", help="the logs of all ranks on this node")
@click.option("--all", "everything", is_flag=True, help="every line of every attempt, not the last ones")
@click.option("--raw", is_flag=True, help="with escape codes, as they were written")
@click.pass_obj
def command(
    out: Out,
    run: str | None,
    step: str | None,
    follow: bool,
    lines: int,
    rank: int | None,
    node: str | None,
    everything: bool,
    raw: bool,
) -> int:
    """Show the log of RUN's STEP: the last step that wrote one, rank 0 where there are several.

    A log holds all attempts of the step, one after the other.
    """
    if follow and (node or everything):
        option = "--node" if node else "--all"
        raise ConfigError.of("usage", f"-f follows one log, not {option}", hint="hpctrain logs -f --rank 0")
    if node and rank is not None:
        raise ConfigError.of("usage", "--rank and --node are two ways to choose", hint=f"--node {node}")
    directory = _find_run(out, run)
    steps = logs.chosen_steps(steps_of(directory), step)
    if follow:
        written = [name for name in steps if logs.log_of(directory, name, rank)]
        first = written[-1] if written else steps[0]
        live = LiveRun.open(directory, out.environ)
        followed = steps[steps.index(first) :]
        tail(out, live, followed, rank, lines, raw)
        return _ended(live, followed)
    if node:
        _show_node(out, directory, steps, node, None if everything else lines, raw)
        return 0
    path = logs.newest_log(directory, steps, rank)
    _show(out, every_line(path) if everything else logs.last_lines(path, lines), raw)
    return 0


def _show_node(
    out: Out, directory: RunDirectory, steps: list[str], node: str, count: int | None, raw: bool
) -> None:
    """What the ranks of one node wrote: the last lines of the last attempt, or all of every attempt there."""
    step = next((s for s in reversed(steps) if placed.rank_logs(directory, s)), steps[-1])
    paths = placed.logs_on_node(directory, step, node, ever=count is None)
    for path in paths:
        if len(paths) > 1:
            out.lines([f"==> {path.name} <=="])
        if count is None:
            _show(out, placed.on_node(every_line(path), node), raw)
        else:
            _show(out, placed.of_last_attempt(logs.last_lines(path, count)), raw)


def _show(out: Out, lines: Iterable[str], raw: bool) -> None:
    """A thousand at a time: a log may be larger than memory."""
    cleaned = _cleaned(lines, raw, out)
    while batch := list(itertools.islice(cleaned, 1000)):
        out.lines(batch)


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
