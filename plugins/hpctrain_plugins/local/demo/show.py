"""What the demo shows while it works: one line a step, the training with its loss."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hpctrain.cli.doing import Doing
from hpctrain.cli.out import Out
from hpctrain.errors import JobFailed
from hpctrain.model.job import State
from hpctrain.model.words import Loc
from hpctrain.render.shell import plain
from hpctrain.run import start
from hpctrain.run.directory import RunDirectory
from hpctrain.session import Session
from hpctrain.ui.progress import Progress

TICK_SECONDS = 0.3
EXPORT = "export"


@contextmanager
def locking(out: Out) -> Iterator[None]:
    """A line while the versions are looked up."""
    if out.flags.quiet:
        yield
        return
    with Progress(out.err, label=14) as progress:
        line = progress.line("versions")
        try:
            yield
        except BaseException:
            line.end("FAIL")
            raise
        line.end("ok", note="pinned in run.lock.toml")


def carried_out(out: Out, session: Session, earlier: RunDirectory | None) -> RunDirectory:
    """The run, from its steps here to the end of its job."""
    tools = start.tools_for(session)
    try:
        with Doing(out, len(session.plan().steps)) as doing:
            if earlier is None:
                run, _ = start.submit(session, tools, doing.tell)
            else:
                run = earlier
                graph = start.graph_of(run)
                start.go_on(run, graph, session.hooks, tools, session.environ, doing.tell)
        _follow(out, session, run)
        if session.plan().step_named(EXPORT) is not None:
            _converted(out, session, run)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("hpctrain demo") from None
    return run


def _follow(out: Out, session: Session, run: RunDirectory) -> None:
    from hpctrain_job.metrics import read

    total = getattr(session.run.train.options, "max_steps", None) or None
    quiet = out.flags.quiet
    with Progress(out.err, label=14) as progress:
        line = None if quiet else progress.line("training", unit="steps")
        while True:
            rows = [r for r in read(run.metrics) if r.get("loss") is not None]
            if line is not None and rows:
                line.update(done=rows[-1]["step"], total=total, note=f"loss {rows[-1]['loss']:.3f}")
            state = _state(session, run, "train")
            if state.over:
                break
            progress.tick()
            time.sleep(TICK_SECONDS)
        if line is not None:
            line.end("ok" if state is State.DONE else "FAIL", log=str(run.log("train")))
    if state is not State.DONE:
        raise JobFailed.of(
            "job-failed", f"the training of {run.title} {state.value}", hint=f"hpctrain logs {run.title}"
        )


def _converted(out: Out, session: Session, run: RunDirectory) -> None:
    """Wait for the checkpoint's conversion; its own record says what was verified."""
    with Progress(out.err, label=14) as progress:
        line = None if out.flags.quiet else progress.line("convert")
        while not (state := _state(session, run, EXPORT)).over:
            progress.tick()
            time.sleep(TICK_SECONDS)
        good = state is State.DONE and record(session, run)["verified"] == "roundtrip"
        if line is not None:
            note = "checkpoint -> Hugging Face, round trip exact" if good else None
            line.end("ok" if good else "FAIL", note, log=str(run.log(EXPORT)))
    if not good:
        raise JobFailed.of(
            "job-failed",
            f"the conversion of {run.title} {state.value}",
            hint=f"hpctrain logs {run.title} {EXPORT}",
        )


def record(session: Session, run: RunDirectory) -> dict[str, Any]:
    """What the conversion of the newest checkpoint noted."""
    exports = Loc("checkpoints", f"{run.name}/{run.path.name}") / session.run.checkpoint.export
    folders = Path(plain(exports, session.binding)).iterdir()
    newest = max(folders, key=lambda folder: folder.stat().st_mtime)
    said: dict[str, Any] = json.loads((newest / "conversion.json").read_text(encoding="utf-8"))
    return said


def _state(session: Session, run: RunDirectory, step: str) -> State:
    graph, tools = start.graph_of(run), start.tools_for(session)
    return start.states_of(run, graph, session.hooks, tools, session.environ)[step]
