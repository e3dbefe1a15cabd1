"""What the demo shows while it works: one line a step, the training with its loss."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hpctrain.command import LiveRun, Out, Prepared, Progress, RunDirectory, StepLines
from hpctrain.plugin import JobFailed, Loc, State
from hpctrain.toolbox import plain_text

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


def executed(out: Out, prepared: Prepared, earlier: RunDirectory | None) -> RunDirectory:
    """The run, from its steps here to the end of its job; an `earlier` one that was interrupted goes on."""
    try:
        with StepLines(out, len(prepared.plan.steps)) as step_lines:
            if earlier is None:
                run, _ = prepared.submit(step_lines.tell)
            else:
                run = LiveRun.open(earlier, prepared.environ)
                run.resume(step_lines.tell)
        _follow(out, prepared, run)
        if prepared.plan.step_named(EXPORT) is not None:
            _converted(out, prepared, run)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("hpctrain demo") from None
    return run.directory


def _follow(out: Out, prepared: Prepared, run: LiveRun) -> None:
    from hpctrain_job.metrics import read

    total = getattr(prepared.plan.run.train.options, "max_steps", None) or None
    quiet = out.flags.quiet
    with Progress(out.err, label=14) as progress:
        line = None if quiet else progress.line("training", unit="steps")
        while True:
            rows = [r for r in read(run.directory.metrics) if r.get("loss") is not None]
            if line is not None and rows:
                line.update(done=rows[-1]["step"], total=total, note=f"loss {rows[-1]['loss']:.3f}")
            state = run.states()["train"]
            if state.over:
                break
            progress.tick()
            time.sleep(TICK_SECONDS)
        if line is not None:
            line.end("ok" if state is State.DONE else "FAIL", log=str(run.directory.log("train")))
    if state is not State.DONE:
        raise JobFailed.of(
            "job-failed",
            f"the training of {run.directory.title} {state.value}",
            hint=f"hpctrain logs {run.directory.title}",
        )


def _converted(out: Out, prepared: Prepared, run: LiveRun) -> None:
    """Wait for the checkpoint's conversion; its own record says what was verified."""
    with Progress(out.err, label=14) as progress:
        line = None if out.flags.quiet else progress.line("convert")
        while not (state := run.states()[EXPORT]).over:
            progress.tick()
            time.sleep(TICK_SECONDS)
        good = state is State.DONE and conversion_record(prepared, run.directory)["verified"] == "roundtrip"
        if line is not None:
            note = "checkpoint -> Hugging Face, round trip exact" if good else None
            line.end("ok" if good else "FAIL", note, log=str(run.directory.log(EXPORT)))
    if not good:
        raise JobFailed.of(
            "job-failed",
            f"the conversion of {run.directory.title} {state.value}",
            hint=f"hpctrain logs {run.directory.title} {EXPORT}",
        )


def conversion_record(prepared: Prepared, run: RunDirectory) -> dict[str, Any]:
    """What the conversion of the newest checkpoint noted."""
    exports = Loc("checkpoints", f"{run.name}/{run.own_name}") / prepared.plan.run.checkpoint.export
    folders = Path(plain_text(exports, prepared.binding)).iterdir()
    newest = max(folders, key=lambda folder: folder.stat().st_mtime)
    record: dict[str, Any] = json.loads((newest / "conversion.json").read_text(encoding="utf-8"))
    return record
