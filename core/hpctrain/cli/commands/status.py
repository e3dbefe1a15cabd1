"""`hpctrain status`: one word for a run and each of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from hpctrain.cli.out import Out
from hpctrain.model.job import State
from hpctrain.run.find import open_run
from hpctrain.run.status import SAVED, RunState, StepState
from hpctrain.ui import text
from hpctrain.ui.table import Column, Table

if TYPE_CHECKING:
    from hpctrain.run.chain_state import ChainState

STYLES = {State.DONE: "ok", State.FAILED: "error", State.CANCELLED: "warn", State.UNKNOWN: "warn"}


@click.command("status")
@click.argument("run", required=False)
@click.pass_obj
def command(out: Out, run: str | None) -> int:
    """Show the state of RUN (default: the newest), from its jobs' records and then the scheduler."""
    live = open_run(run, out.environ)
    directory, graph, run_state = live.directory, live.graph, live.status()
    metrics = live.metrics()
    if out.flags.json:
        out.document(
            "status",
            run=directory.title,
            path=str(directory.path),
            cluster=graph.cluster,
            state=run_state.state.value,
            age_s=round(run_state.answer.age_s, 1),
            silent=[p.message for p in run_state.answer.silent],
            steps=[_json(step) for step in run_state.steps],
            metrics=dict(metrics.last),
        )
        return 0
    out.lines(_header(out, directory.title, graph.cluster, run_state))
    if metrics.last:
        out.lines(out.term.wrapped(progress_line(metrics.last, metrics.last_evaluation)))
    out.lines(_table(run_state).lines(out.term))
    for step in run_state.steps:
        if step.chain is not None:
            out.lines(out.term.wrapped(_chain_line(step.chain)))
    if (place := live.stop_file()) and run_state.is_in_progress:
        out.lines([f"stop file    {place}"])
    saved = live.checkpoints()
    if saved is not None and saved.is_dir():
        out.lines([f"checkpoints  {saved}"])
    if left := live.secrets_left():
        out.lines(
            [f"tokens       of {', '.join(left)} are still on the disk: hpctrain cancel {directory.title}"]
        )
    if run_state.is_in_progress and (asked := round(run_state.answer.age_s)):
        out.lines([f"scheduler    asked {text.duration(asked)} ago"])
    if run_state.answer.silent:
        out.say(f"the scheduler is silent: {run_state.answer.silent[0].message}")
    _next(out, directory.title, run_state)
    return 0


def _chain_line(chain: ChainState) -> str:
    """`attempts     3 of 10, 2 jobs wait behind it, 6d12h of training left`."""
    waiting = max(0, len(chain.jobs) - 1)
    parts = [
        f"{chain.attempts} of {chain.planned}",
        *(
            [f"{waiting} job{'s' if waiting != 1 else ''} wait{'s' if waiting == 1 else ''} behind it"]
            if waiting
            else []
        ),
        *([f"its chain ended: {chain.ended}"] if chain.ended else [f"{text.duration(chain.left_s)} left"]),
        *([f"without {' '.join(chain.avoided)}, which failed"] if chain.avoided else []),
    ]
    return f"attempts     {', '.join(parts)}"


def progress_line(row: Mapping[str, Any], evaluation: Mapping[str, Any] | None = None) -> str:
    """`step 155   loss 1.214   1,912 tokens/s   mfu 30 %`."""
    parts = [f"step {row.get('step', '?')}", f"loss {text.number(row.get('loss'))}"]
    if evaluation:
        parts.append(
            f"eval_loss {text.number(evaluation['eval_loss'])} at step {evaluation.get('step', '?')}"
        )
    if row.get("tokens_per_s") is not None:
        parts.append(f"{text.count(round(row['tokens_per_s']))} tokens/s")
    if row.get("mfu") is not None:
        parts.append(f"mfu {text.percent(row['mfu'])}")
    return "   ".join(parts)


def _header(out: Out, title: str, cluster: str, run_state: RunState) -> list[str]:
    """`guanaco-lora/1 on frontier   RUNNING   job 3141593, 2 nodes, 28m of 1h30m`."""
    word = run_state.state.value.upper()
    jobs = [step for step in run_state.steps if step.job]
    current_step = next((s for s in jobs if s.state is run_state.state), jobs[-1] if jobs else None)
    line = f"{title} on {cluster}   {word}" + (f"   {_job(current_step)}" if current_step else "")
    painted = out.term.paint(STYLES.get(run_state.state, "heading"), word)
    return [part.replace(word, painted) for part in out.term.wrapped(line)]


def _job(step: StepState) -> str:
    """A job with what the scheduler says of it."""
    parts = [f"job {step.job}"]
    job_state = step.scheduler
    if job_state is not None and job_state.nodes:
        parts.append(f"{len(job_state.nodes)} node{'s' if len(job_state.nodes) != 1 else ''}")
    if job_state is not None and job_state.elapsed_s is not None and not step.state.over:
        limit = f" of {text.duration(job_state.limit_s)}" if job_state.limit_s else ""
        parts.append(f"{text.duration(job_state.elapsed_s, rough=True)}{limit}")
    return ", ".join(parts)


def _table(run_state: RunState) -> Table:
    table = Table(Column("STEP", style="name"), Column("STATE"), Column("JOB", drop=1), Column("WHY", drop=2))
    for step in run_state.steps:
        table.row(step.step, (STYLES.get(step.state, ""), step.state.value), step.job or "-", _why(step))
    return table


def _why(step: StepState) -> str:
    origin_note = f"from {step.origin}" if step.origin and step.state is State.DONE else ""
    return ", ".join(filter(None, (reason_of(step), origin_note))) or "-"


def reason_of(step: StepState) -> str:
    """Why a step is in its state; a job that was cancelled saved for that reason, not for its time limit."""
    if step.state is State.CANCELLED and step.exit_code == SAVED:
        return "it was cancelled; it saved before it ended"
    return step.reason


def _json(step: StepState) -> dict[str, Any]:
    return {
        "step": step.step,
        "state": step.state.value,
        "job": step.job or None,
        "reason": reason_of(step),
        "exit_code": step.exit_code,
        "attempt": step.attempt,
        "said": step.source,
        "origin": step.origin or None,
        **({"chain": _chain_json(step.chain)} if step.chain else {}),
    }


def _chain_json(chain: ChainState) -> dict[str, Any]:
    return {
        "attempts": chain.attempts,
        "planned": chain.planned,
        "jobs": list(chain.jobs),
        "left_s": round(chain.left_s),
        "ended": chain.ended or None,
        "avoided": list(chain.avoided),
    }


def _next(out: Out, title: str, run_state: RunState) -> None:
    if any(s.state is State.FAILED for s in run_state.steps):
        out.next(f"hpctrain diagnose {title}")
    elif any(s.state is State.WAITING for s in run_state.steps) and run_state.state is State.WAITING:
        out.next(f"hpctrain continue {title}")
    elif not run_state.state.over:
        out.next(f"hpctrain logs -f {title}")
    else:
        out.next(f"hpctrain metrics {title}")
