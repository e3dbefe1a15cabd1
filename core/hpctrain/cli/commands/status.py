"""`hpctrain status`: one word for a run and each of its steps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpctrain.cli.out import Out
from hpctrain.cli.show import live_line
from hpctrain.cli.show.states import STYLES, reason_of
from hpctrain.model.job import State
from hpctrain.run.diagnosis.hanging import hanging, verdict_of
from hpctrain.run.find import open_run
from hpctrain.run.outcome.checkpoints import Saved, saved
from hpctrain.run.output.trackers import tensorboard
from hpctrain.run.steps.status import RunState, StepState
from hpctrain.run.watch.vitals import Vitals
from hpctrain.run.watch.watching import Watched
from hpctrain.ui import text
from hpctrain.ui.table import Column, Table
from hpctrain_job.chain.decision import STOPPED, Cause

if TYPE_CHECKING:
    from hpctrain.model.job import ChainState
    from hpctrain.run.disk.directory import RunDirectory
    from hpctrain_job.chain.decision import Attempt
    from hpctrain_job.hangs.verdicts import Written


@click.command("status")
@click.argument("run", required=False)
@click.pass_obj
def command(out: Out, run: str | None) -> int:
    """Show the state of RUN (default: the newest), from its jobs' records and then the scheduler."""
    watched = Watched(open_run(run, out.environ))
    live, run_state, vitals = watched.live, watched.state, watched.vitals()
    directory, model = live.directory, saved(live)
    events = tensorboard(directory.path, *([model.folder] if model else []))
    if out.flags.json:
        out.document(
            "status",
            run=directory.title,
            path=str(directory.path),
            cluster=live.graph.cluster,
            state=run_state.state.value,
            age_s=round(run_state.answer.age_s, 1),
            silent=[p.message for p in run_state.answer.silent],
            steps=[_json(directory, step) for step in run_state.steps],
            metrics=dict(watched.readings.last),
            training=live_line.as_json(vitals, time.time())["training"],
            saved=_saved_json(model),
            tensorboard=_events_json(events),
        )
        return 0
    now = time.time()
    out.lines(_header(out, vitals, now))
    if training := [part.text for part in live_line.training(vitals, now)]:
        out.lines(out.term.wrapped("   ".join(training)))
    out.lines(_table(run_state).lines(out.term))
    for step in run_state.steps:
        if step.chain is not None:
            out.lines(out.term.wrapped(_chain_line(step.chain)))
    for step in run_state.steps:
        if (verdict := hanging(directory, step)) is not None:
            out.lines(out.term.wrapped(f"hang         {verdict.words}"))
            out.lines(part for line in verdict.evidence for part in out.term.wrapped(f"             {line}"))
    if (place := live.stop_file()) and run_state.is_in_progress:
        out.lines([f"stop file    {place}"])
    out.lines([*_model_lines(model, now), *_events_lines(events)])
    if left := live.secrets_left():
        out.lines(
            [f"tokens       of {', '.join(left)} are still on the disk: hpctrain cancel {directory.title}"]
        )
    if run_state.answer.silent:
        out.say(f"the scheduler is silent: {run_state.answer.silent[0].message}")
    out.next(next_command(directory.title, run_state))
    return 0


def _model_lines(model: Saved | None, now: float) -> Iterator[str]:
    """Where the trainer saves, the newest whole checkpoint and the exported model."""
    if model is None:
        return
    yield f"checkpoints  {model.folder}"
    if model.newest is not None:
        age = text.age(model.newest.path.stat().st_mtime, now)
        several = f", the newest whole one of {len(model.checkpoints)}" if len(model.checkpoints) > 1 else ""
        yield f"saved        {model.newest.path.name}, {age}{several}"
    if model.exported is not None:
        yield f"model        {model.exported}"


def _events_lines(events: Path | None) -> list[str]:
    """Where TensorBoard finds the run, in the words of its option."""
    return [f"tensorboard  --logdir {events}"] if events else []


def _events_json(events: Path | None) -> str | None:
    return str(events) if events else None


def _chain_line(chain: ChainState) -> str:
    """`attempts     3 of 10, 2 jobs wait behind it, 6d12h of training left`."""
    waiting = max(0, len(chain.jobs) - 1)
    parts = [
        f"{chain.attempts} of {chain.planned}",
        *([f"began again {chain.restarts} times on its spare nodes"] if chain.restarts > 1 else []),
        *(["began again once on its spare nodes"] if chain.restarts == 1 else []),
        *(
            [f"{waiting} job{'s' if waiting != 1 else ''} wait{'s' if waiting == 1 else ''} behind it"]
            if waiting
            else []
        ),
        *([f"its chain ended: {chain.ended}"] if chain.ended else [f"{text.duration(chain.left_s)} left"]),
        *([f"without {' '.join(chain.avoided)}, which failed"] if chain.avoided else []),
    ]
    return f"attempts     {', '.join(parts)}"


def _header(out: Out, vitals: Vitals, now: float) -> list[str]:
    """`guanaco-lora/1 on frontier   RUNNING   job 3141593, 2 nodes, 28m of 1h30m`."""
    word = vitals.state.value.upper()
    job = ", ".join(part.text for part in live_line.job(vitals, now))
    line = f"{vitals.title} on {vitals.cluster}   {word}" + (f"   {job}" if job else "")
    painted = out.term.paint(STYLES.get(vitals.state, "heading"), word)
    return [part.replace(word, painted) for part in out.term.wrapped(line)]


def _table(run_state: RunState) -> Table:
    table = Table(Column("STEP", style="name"), Column("STATE"), Column("JOB", drop=1), Column("WHY", drop=2))
    for step in run_state.steps:
        table.row(step.step, (STYLES.get(step.state, ""), step.state.value), step.job or "-", _why(step))
    return table


def _why(step: StepState) -> str:
    origin_note = f"from {step.origin}" if step.origin and step.state is State.DONE else ""
    return ", ".join(filter(None, (reason_of(step), origin_note))) or "-"


def _json(directory: RunDirectory, step: StepState) -> dict[str, Any]:
    verdict = hanging(directory, step)
    return {
        "step": step.step,
        "state": step.state.value,
        "job": step.job or None,
        "reason": reason_of(step),
        "exit_code": step.exit_code,
        "attempt": step.attempt,
        "said": step.source,
        "origin": step.origin or None,
        **({"chain": _chain_json(directory, step.step, step.chain)} if step.chain else {}),
        **({"hang": _hang_json(verdict)} if verdict else {}),
    }


def _chain_json(directory: RunDirectory, step: str, chain: ChainState) -> dict[str, Any]:
    from hpctrain.run.steps.chained import attempts_of  # most runs have no chain

    answers = [entry for entry in directory.record.read() if entry["event"] == "submitted"]
    return {
        "attempts": chain.attempts,
        "planned": chain.planned,
        "restarts": chain.restarts,
        "jobs": list(chain.jobs),
        "left_s": round(chain.left_s),
        "ended": chain.ended or None,
        "avoided": list(chain.avoided),
        # jobs whose submission nobody had the answer of, found again by their tags
        "found_again": [entry["job"] for entry in answers if entry.get("adopted") and entry["step"] == step],
        "history": [_attempt_json(directory, step, attempt) for attempt in attempts_of(directory.path, step)],
    }


def _attempt_json(directory: RunDirectory, step: str, attempt: Attempt) -> dict[str, Any]:
    hang = verdict_of(directory, step, attempt.job) if attempt.cause is Cause.HUNG else None
    return {
        "job": attempt.job,
        "inside": attempt.is_inside,
        "began": attempt.began,
        "ended": attempt.ended,
        "cause": attempt.cause.value if attempt.cause else None,
        "saved_before": attempt.first_step,
        "saved_after": attempt.last_step,
        "nodes": list(attempt.nodes),
        "lost_nodes": list(attempt.lost_nodes),
        "hang": hang.words if hang else None,
    }


def _hang_json(verdict: Written) -> dict[str, Any]:
    return {
        "kind": verdict.kind,
        "says": verdict.words,
        "ranks": list(verdict.ranks),
        "nodes": list(verdict.nodes),
        "evidence": list(verdict.evidence),
        "at": verdict.at,
        "stopped": verdict.ends,
    }


def _saved_json(model: Saved | None) -> dict[str, Any] | None:
    if model is None:
        return None
    newest = str(model.newest.path) if model.newest else None
    return {
        "folder": str(model.folder),
        "newest": newest,
        "exported": str(model.exported) if model.exported else None,
        "damaged": [path.name for path in model.damaged],
    }


def next_command(title: str, run_state: RunState) -> str:
    """What is usually typed now."""
    chains = [step.chain for step in run_state.steps if step.chain is not None]
    if any(s.state is State.FAILED for s in run_state.steps):
        return f"hpctrain diagnose {title}"
    if run_state.state is State.WAITING or any(chain.ended.startswith(STOPPED) for chain in chains):
        return f"hpctrain continue {title}"
    return f"hpctrain metrics {title}" if run_state.state.over else f"hpctrain watch {title}"
