"""`hpctrain watch`: a run as it goes on, on the whole terminal; lines in a pipe."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import deque
from collections.abc import Callable

import click
from attrs import frozen

from hpctrain.cli.out import Out
from hpctrain.cli.shared.survived import goes_on, survived
from hpctrain.cli.show import live_line, watch_screen
from hpctrain.cli.show.watch_screen import View
from hpctrain.errors import HpctrainError, JobFailed
from hpctrain.model.job import State
from hpctrain.run.find import open_run
from hpctrain.run.output import logs
from hpctrain.run.output.growing import Growing, start_of_last
from hpctrain.run.steps.status import BAD
from hpctrain.run.waiting import is_over
from hpctrain.run.watch.beside import Beside
from hpctrain.run.watch.fleet import Fleet
from hpctrain.run.watch.vitals import Vitals
from hpctrain.run.watch.watching import Watched
from hpctrain.ui.screen import Screen
from hpctrain.ui.term import Term

LOOK_SECONDS, TICK_SECONDS = 2.0, 1.0
LOG_LINES, LOG_BYTES = 200, 1 << 20
"""What is kept of a log: more than any terminal shows, less than a program can print in two seconds."""
PLAIN_SECONDS = 60.0
NONE = "no run lives; hpctrain runs lists those that are over"
LEAVE = ("q", "Q", "\x04")


@click.command("watch")
@click.argument("run", required=False)
@click.option("--once", is_flag=True, help="say how it is, and no more")
@click.pass_obj
def command(out: Out, run: str | None, once: bool) -> int:
    """Watch RUN, or all runs that live: state, steps, time left, losses, rates, the curve, the log.

    `q` leaves, and the run goes on. In a pipe it prints a line when something happens, at most one a minute.
    Exit 8: RUN ended badly while it was watched.
    """
    look: Callable[[], Snapshot] = OneRun(out, run) if run else AllRuns(out)
    if once or out.flags.json or not _has_screen(out):
        last = _lines(out, look, once=once)
    else:
        last = _screen(out, look)
    return 0 if once or run is None else _exit_code(last)


@frozen(kw_only=True)
class Snapshot:
    """What a look has found."""

    runs: tuple[Vitals, ...]
    """One run, or all that live."""
    is_over: bool
    """Whether nothing more happens by itself."""
    rows: Callable[[float, Term, int], list[str]]
    """The picture at a time, for a terminal and its height."""


class OneRun:
    """One run with its curve and its log."""

    def __init__(self, out: Out, reference: str) -> None:
        self.watched = Watched(open_run(reference, out.environ))
        self._log: Growing | None = None
        self._last_lines: deque[str] = deque(maxlen=LOG_LINES)

    def __call__(self) -> Snapshot:
        vitals, state = self.watched.vitals(), self.watched.state
        self._read_log(vitals)
        view = View(
            vitals=vitals,
            steps=state.steps,
            losses=self.watched.readings.losses.points,
            log_name=self._log.path.name if self._log else "",
            log=tuple(self._last_lines),
        )
        return Snapshot(
            runs=(vitals,),
            is_over=is_over(state),
            rows=lambda now, term, height: watch_screen.rows(view, now, term, height),
        )

    def _read_log(self, vitals: Vitals) -> None:
        """The log of the step that decides the state, else of the last step that wrote one."""
        directory = self.watched.live.directory
        steps = [node.name for node in self.watched.live.graph.nodes]
        deciding = [vitals.step.step] if vitals.step else []
        written = (path for step in (*deciding, *reversed(steps)) if (path := logs.log_of(directory, step)))
        path = next(written, None)
        if path is not None and (self._log is None or self._log.path != path):
            self._log = Growing(path, start_of_last(path, LOG_LINES, most=LOG_BYTES), most=LOG_BYTES)
            self._last_lines.clear()
        if self._log is not None:
            self._last_lines += map(logs.last_state, self._log.lines())


class AllRuns:
    """Every run of the user that lives, a line for each."""

    def __init__(self, out: Out) -> None:
        self._fleet = Fleet(out.environ)

    def __call__(self) -> Snapshot:
        runs = tuple(self._fleet.vitals())
        return Snapshot(
            runs=runs,
            is_over=not runs,
            rows=lambda now, term, height: watch_screen.overview(runs, now, term, height),
        )


def _has_screen(out: Out) -> bool:
    """Whether there is a terminal that can be drawn on, and somebody who wants that."""
    return sys.stdin.isatty() and sys.stdout.isatty() and out.term.progress == "bar"


def _exit_code(snapshot: Snapshot) -> int:
    """Of one run that was watched to its end, as `submit --wait` and `logs -f` say it."""
    ended_badly = snapshot.is_over and any(vitals.state in BAD for vitals in snapshot.runs)
    return JobFailed.exit_code if ended_badly else 0


def _screen(out: Out, look: Callable[[], Snapshot]) -> Snapshot:
    """Draw until the end, or until the user leaves; the last look."""
    snapshot = look()  # what is wrong with the name of the run is spoken_of before the screen is taken
    if not snapshot.is_over:
        beside = Beside(look, LOOK_SECONDS)
        with survived(out, _title(snapshot)), Screen(out.term) as screen:
            left = False
            while not (snapshot.is_over or left):
                term = out.terminal(sys.stdout)
                screen.show(snapshot.rows(time.time(), term, screen.height), term.width)
                left = any(key in LEAVE for key in screen.keys(TICK_SECONDS))
                snapshot = beside.newest() or snapshot
        if left:
            goes_on(out, _title(snapshot))
            return snapshot
    _say(out, snapshot)
    return snapshot


def _lines(out: Out, look: Callable[[], Snapshot], *, once: bool) -> Snapshot:
    """A line for each run when its state or its step has changed; all runs again after a minute at most."""
    spoken_of: dict[str, tuple[object, float]] = {}
    snapshot = look()
    with survived(out, _title(snapshot)):
        while True:
            for vitals in snapshot.runs:
                topic, spoken = spoken_of.get(vitals.title, (None, -PLAIN_SECONDS))
                due = time.monotonic() - spoken >= PLAIN_SECONDS
                if vitals.state is not topic or due or snapshot.is_over:
                    spoken_of[vitals.title] = (vitals.state, time.monotonic())
                    _one_line(out, vitals)
            ended = spoken_of.keys() - {vitals.title for vitals in snapshot.runs}
            for title in sorted(ended):
                del spoken_of[title]
                _last_line(out, title)
            sys.stdout.flush()
            if once or snapshot.is_over:
                break
            time.sleep(LOOK_SECONDS)
            snapshot = look()
    if not snapshot.runs:
        out.say(NONE)
    return snapshot


def _last_line(out: Out, title: str) -> None:
    """How a run ended that lives no more; nothing where it was removed meanwhile."""
    with contextlib.suppress(HpctrainError):
        _one_line(out, Watched(open_run(title, out.environ)).vitals())


def _say(out: Out, snapshot: Snapshot) -> None:
    """The last word on what was watched, on the screen that stays."""
    for vitals in snapshot.runs:
        _one_line(out, vitals)
        look = "diagnose" if vitals.state is State.FAILED else "status"
        out.next(f"hpctrain {look} {vitals.title}")
    if not snapshot.runs:
        out.say(NONE)


def _one_line(out: Out, vitals: Vitals) -> None:
    now = time.time()
    if out.flags.json:
        out.document("watch", **live_line.as_json(vitals, now))
    else:
        clock = f"{time.strftime('%H:%M:%S', time.localtime(now))}  "
        room = out.term.narrowed(out.term.width - len(clock))
        out.lines([clock + live_line.line(vitals, now, room)])


def _title(snapshot: Snapshot) -> str:
    return snapshot.runs[0].title if len(snapshot.runs) == 1 else "what runs"
