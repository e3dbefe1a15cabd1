"""What the steps of a run print: the log of a step or of one rank, and its lines as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from hpctrain.errors import ConfigError
from hpctrain.model.job import State
from hpctrain.plan.chain import TRAIN
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.output.growing import Growing, start_of_last
from hpctrain.run.steps.status import IN_PROGRESS

TICK_SECONDS = 0.5
"""Logs lie on network disks, where being told of changes does not work: they are read again."""


def chosen_steps(steps: Sequence[str], step: str | None) -> list[str]:
    """The step that was named, or all of them; ConfigError where the run has no such step."""
    if step is not None and step not in steps:
        raise ConfigError.of("no-step", f"no step {step!r}", hint=" ".join(steps))
    return [step] if step is not None else list(steps)


def log_of(directory: RunDirectory, step: str, rank: int | None = None) -> Path | None:
    """The log of one rank; where none is named rank 0's, else that of the job itself."""
    for number in (rank,) if rank is not None else (0, None):
        path = directory.log(step, number)
        if path.is_file():
            return path
    return None


def newest_log(directory: RunDirectory, steps: Sequence[str], rank: int | None = None) -> Path:
    """The log of the last of these steps that wrote one, of a rank first that of the training, which is what
    has ranks; ConfigError says what there is instead."""
    if rank is not None and TRAIN in steps and len(steps) > 1:
        path = log_of(directory, TRAIN, rank)
        if path is not None:
            return path
    path = next((path for step in reversed(steps) if (path := log_of(directory, step, rank))), None)
    if path is None and rank is not None:
        raise _no_rank(directory, steps, rank)
    if path is None:
        step_text = steps[0] if len(steps) == 1 else "any step"
        raise _no_log(directory, f"{directory.title} has no log of {step_text} yet")
    return path


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a log as they were written, a torn one among them."""
    log = Growing(path, start_of_last(path, count))
    return (log.lines() + log.torn_end())[-count:] if count else []


def last_state(line: str) -> str:
    """What a line that was rewritten shows in the end."""
    return line.rstrip("\r\n").rpartition("\r")[2]


def follow(
    directory: RunDirectory,
    steps: Sequence[str],
    states: Callable[[], Mapping[str, State]],
    *,
    rank: int | None = None,
    lines: int,
) -> Iterator[list[str]]:
    """The lines of one step after the other, as each begins to write; to the end of the last.

    What is yielded may be no lines at all: nothing new was written within half a second.
    """
    for step in steps:
        log: Growing | None = None
        over = False
        while not over:
            over = _over(directory, step, states)  # asked first: what was written before is read after
            path = log_of(directory, step, rank)
            if path is not None and (log is None or path != log.path):
                log = Growing(path, start_of_last(path, lines) if log is None else 0)
            new_lines = log.lines() if log is not None else []
            yield new_lines + log.torn_end() if over and log is not None else new_lines
            if not over:
                time.sleep(TICK_SECONDS)


def _over(directory: RunDirectory, step: str, states: Callable[[], Mapping[str, State]]) -> bool:
    """Whether the step will write no more: it ended, or nothing that runs now will start it."""
    if (directory.step(step) / "exit").exists():
        return True
    current = states()
    if current[step] is State.PLANNED:
        return not any(state in IN_PROGRESS for state in current.values())
    return current[step].over or current[step] in (State.UNKNOWN, State.WAITING)


def _no_rank(directory: RunDirectory, steps: Sequence[str], rank: int) -> ConfigError:
    """What there is instead of this rank, in the last step that wrote anything."""
    training = [name for name in steps if name == TRAIN]
    for step in (*training, *reversed(steps)):
        suffixes = [path.name[len(step) + 5 : -4] for path in directory.logs.glob(f"{step}.rank*.log")]
        ranks = sorted(int(text) for text in suffixes if text.isdecimal())
        if ranks or directory.log(step).is_file():
            return ConfigError.of(
                "no-log",
                f"{step} of {directory.title} has no log of rank {rank}",
                notes=(f"ranks: {_spans(ranks)}" if ranks else "no rank has a log of its own",),
                hint=f"hpctrain logs {directory.title} {step}" + (f" --rank {ranks[-1]}" if ranks else ""),
            )
    return _no_log(directory, f"{directory.title} has no log yet")


def _no_log(directory: RunDirectory, message: str) -> ConfigError:
    return ConfigError.of("no-log", message, hint=f"hpctrain status {directory.title}")


def _spans(numbers: list[int]) -> str:
    """`0-3 6`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
