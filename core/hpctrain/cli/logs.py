"""`hpctrain logs`: what a step printed; with -f as it is printed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from hpctrain.cli.out import Out
from hpctrain.cli.runs_of import find
from hpctrain.errors import ConfigError
from hpctrain.model.job import State
from hpctrain.run import start
from hpctrain.run.directory import RunDirectory
from hpctrain.run.tools import Tools

TICK_SECONDS = 0.5
"""Logs lie on network disks, where being told of changes does not work: they are read again."""


@click.command("logs")
@click.argument("run", required=False)
@click.argument("step", required=False)
@click.option("-f", "--follow", is_flag=True, help="go on until the step, or the run, is over")
@click.option("-n", "--lines", default=40, show_default=True, help="how many of the last lines")
@click.option("--rank", type=int, help="one rank's own log")
@click.option("--raw", is_flag=True, help="with escape codes, as they were written")
@click.pass_obj
def command(
    out: Out, run: str | None, step: str | None, follow: bool, lines: int, rank: int | None, raw: bool
) -> int:
    """Show the log of RUN's STEP: the last step that wrote one, rank 0 where there are several."""
    directory = _found(out, run)
    names = [node.name for node in start.graph_of(directory).nodes]
    if step is not None and step not in names:
        raise ConfigError.of("no-step", f"no step {step!r}", hint=" ".join(names))
    written = [name for name in ([step] if step else names) if _path(directory, name, rank)]
    if follow:
        first = written[-1] if written else names[0]
        tail(out, directory, [step] if step else names[names.index(first) :], rank, lines, raw)
        return 0
    path = _path(directory, written[-1], rank) if written else None
    if path is None and rank is not None:
        raise _no_rank(directory, [step] if step else names, rank)
    if path is None:
        raise ConfigError.of(
            "no-log",
            f"{directory.title} has no log of {step or 'any step'} yet",
            hint=f"hpctrain status {directory.title}",
        )
    out.lines(_cleaned(_more(path, _start(path, lines), torn=True)[1], raw, out))
    return 0


def _found(out: Out, run: str | None) -> RunDirectory:
    """The run; the name of a step of the newest one is understood, and said as it is typed."""
    try:
        return find(run, out.environ)
    except ConfigError:
        newest = find(None, out.environ)
        if run not in [node.name for node in start.graph_of(newest).nodes]:
            raise
        said = f"no run {run!r}; it is a step of {newest.title}"
        raise ConfigError.of("no-run", said, hint=f"hpctrain logs {newest.title} {run}") from None


def _no_rank(directory: RunDirectory, steps: list[str], rank: int) -> ConfigError:
    """What there is instead of this rank, in the last step that wrote anything."""
    for step in reversed(steps):
        found = [path.name[len(step) + 5 : -4] for path in directory.logs.glob(f"{step}.rank*.log")]
        ranks = sorted(int(text) for text in found if text.isdecimal())
        if ranks or directory.log(step).is_file():
            return ConfigError.of(
                "no-log",
                f"{step} of {directory.title} has no log of rank {rank}",
                notes=(f"ranks: {_spans(ranks)}" if ranks else "no rank has a log of its own",),
                hint=f"hpctrain logs {directory.title} {step}" + (f" --rank {ranks[-1]}" if ranks else ""),
            )
    return ConfigError.of(
        "no-log", f"{directory.title} has no log yet", hint=f"hpctrain status {directory.title}"
    )


def _spans(numbers: list[int]) -> str:
    """`0-3 6`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def tail(
    out: Out, directory: RunDirectory, names: list[str], rank: int | None, lines: int, raw: bool
) -> None:
    """Show one step after the other, as each begins to write; to the end of the run."""
    for name in names:
        path: Path | None = None
        position = 0
        over = False
        while not over:
            over = _over(out, directory, name)  # asked first: what was written before is read after
            newest = _path(directory, name, rank)
            if newest is not None and newest != path:
                position = _start(newest, lines) if path is None else 0
                path = newest
            if path is not None:
                position, text = _more(path, position, torn=over)
                out.lines(_cleaned(text, raw, out))
            if not over:
                time.sleep(TICK_SECONDS)


def _path(directory: RunDirectory, name: str, rank: int | None) -> Path | None:
    """The log of one rank; where none is named rank 0's, else that of the job itself."""
    for number in (rank,) if rank is not None else (0, None):
        path = directory.log(name, number)
        if path.is_file():
            return path
    return None


def _start(path: Path, count: int) -> int:
    """Where the last `count` lines begin."""
    with path.open("rb") as file:
        last = deque(file, maxlen=count)
        return file.tell() - sum(map(len, last))


def _more(path: Path, position: int, *, torn: bool = False) -> tuple[int, list[str]]:
    """The lines after `position`; one that is still being written waits, unless `torn` is wanted."""
    with path.open("rb") as file:
        file.seek(position)
        data = file.read()
    whole = data if torn else data[: data.rfind(b"\n") + 1]
    lines = whole.decode("utf-8", "replace").split("\n")
    return position + len(whole), lines if lines[-1] else lines[:-1]


def _cleaned(lines: Iterable[str], raw: bool, out: Out) -> Iterator[str]:
    """A line that was rewritten shows its last state; what a terminal would obey is taken out."""
    for line in lines:
        text = line.rstrip("\r\n")
        yield text if raw else out.term.text(text.rpartition("\r")[2])


def _over(out: Out, directory: RunDirectory, step: str) -> bool:
    """Whether the step will write no more: it ended, or nothing that runs now will start it."""
    if (directory.step(step) / "exit").exists():
        return True
    graph = start.graph_of(directory)
    hooks = start.scheduler_hooks(graph.scheduler, out.environ)
    states = start.states_of(directory, graph, hooks, Tools(out.environ, keep=graph.submit_env), out.environ)
    if states[step] is State.PLANNED:
        return not any(state in start.GOING for state in states.values())
    return states[step].over or states[step] in (State.UNKNOWN, State.WAITING)
