"""A run that lives, in one line: the same words in `watch`, `submit --wait`, `logs -f` and `status`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from attrs import frozen

from hpctrain.cli.show.states import STYLES, reason_of
from hpctrain.model.job import State
from hpctrain.run.watch.vitals import Trained, Vitals
from hpctrain.ui import text
from hpctrain.ui.term import Term

GAP = "  "
QUIET_S, QUIET_ROWS = 60.0, 5
"""A training that writes no row for a minute and for the time of five rows is said to be quiet."""
OLD_S = 90.0
"""What the scheduler said longer ago than this is shown with its age."""


@frozen
class Part:
    """A piece of the line; where width is short, the one with the greatest `leaves` goes first, 0 stays."""

    text: str
    leaves: int = 0


def line(vitals: Vitals, now: float, term: Term) -> str:
    """All of it that the terminal is wide enough for; whole in a pipe."""
    parts = [Part(vitals.title), Part(vitals.state.value.upper()), *parts_of(vitals, now)]
    if term.clips:
        parts = fitted(parts, term.width)
    words = [term.text(part.text) for part in parts]
    whole = term.fit(GAP.join(words))
    word = vitals.state.value.upper()
    return whole.replace(f" {word}", f" {term.paint(STYLES.get(vitals.state, 'heading'), word)}", 1)


def parts_of(vitals: Vitals, now: float) -> list[Part]:
    """What is known beside the name and the state, in the order of reading."""
    return [
        *_attempt(vitals),
        *training(vitals, now),
        *job(vitals, now),
        *reason(vitals),
        *_age(vitals, now),
    ]


def as_json(vitals: Vitals, now: float) -> dict[str, Any]:
    """The same for programs; moments are seconds since 1970."""
    step, trained = vitals.step, vitals.trained
    attempt, attempts = vitals.attempt or (1, None)
    return {
        "at": round(now, 1),
        "run": vitals.title,
        "cluster": vitals.cluster,
        "state": vitals.state.value,
        "step": step.step if step else None,
        "job": (step.job if step else "") or None,
        "reason": reason_of(step) if step else "",
        "attempt": attempt,
        "attempts": attempts,
        "nodes": vitals.nodes or None,
        "began_at": vitals.began_at,
        "limit_s": vitals.limit_s,
        "starts_at": vitals.starts_at,
        "position": vitals.position,
        "seen_at": vitals.seen_at,
        "silent": vitals.silent or None,
        "training": {
            "step": trained.step,
            "steps": trained.steps,
            "loss": trained.loss,
            "eval_loss": trained.eval_loss,
            "eval_step": trained.eval_step,
            "tokens_per_s": trained.tokens_per_s,
            "mfu": trained.mfu,
            "at": trained.at,
            "ends_at": trained.ends_at,
        },
    }


def fitted(parts: Sequence[Part], width: int) -> list[Part]:
    """The parts that fit in one line."""
    visible = list(parts)
    while sum(text.cells(p.text) for p in visible) + len(GAP) * (len(visible) - 1) > width:
        leaving = max(visible, key=lambda part: part.leaves)
        if not leaving.leaves:
            break
        visible.remove(leaving)
    return visible


def training(vitals: Vitals, now: float) -> Iterator[Part]:
    """`step 155/240 65 %`, `12m left`, the losses, the rates."""
    trained = vitals.trained
    if trained.step is None:
        return
    yield Part(step_text(trained), 1)
    if remaining := left(vitals, now):
        yield Part(remaining, 2)
    yield Part(f"loss {text.number(trained.loss)}", 1)
    if trained.eval_loss is not None:
        yield Part(f"eval_loss {text.number(trained.eval_loss)} at step {trained.eval_step}", 7)
    if trained.tokens_per_s is not None:
        yield Part(f"{text.count(round(trained.tokens_per_s))} tokens/s", 4)
    if trained.mfu is not None:
        yield Part(f"mfu {text.percent(trained.mfu)}", 5)


def step_text(trained: Trained) -> str:
    """`step 155`, and of how many where that is known."""
    if trained.step is None or not trained.steps:
        return f"step {text.UNKNOWN if trained.step is None else trained.step}"
    return f"step {trained.step}/{trained.steps} {text.percent(trained.step / trained.steps)}"


def left(vitals: Vitals, now: float) -> str:
    """`12m left` of a training that runs, or how long it has been quiet; empty where nobody knows."""
    trained = vitals.trained
    if vitals.state is not State.RUNNING:
        return ""
    quiet = now - trained.at if trained.at is not None else 0.0
    if quiet > max(QUIET_S, QUIET_ROWS * (trained.seconds_per_row or 0.0)):
        return f"no new step for {text.duration(quiet, rough=True)}"
    if trained.ends_at is None:
        return ""
    return f"{text.duration(max(0.0, trained.ends_at - now), rough=True)} left"


def job(vitals: Vitals, now: float) -> Iterator[Part]:
    """`job 3141593`, `2 nodes`, `28m of 1h30m`; of one that waits when it is expected to begin."""
    step = vitals.step
    if step is None:
        return
    if step.job:
        yield Part(f"job {step.job}", 9)
    if vitals.nodes:
        yield Part(f"{vitals.nodes} node{'s' if vitals.nodes != 1 else ''}", 8)
    if vitals.began_at is not None:
        limit = f" of {text.duration(vitals.limit_s)}" if vitals.limit_s else ""
        yield Part(f"{text.duration(now - vitals.began_at, rough=True)}{limit}", 3)
    yield from waiting(vitals, now)


def waiting(vitals: Vitals, now: float) -> Iterator[Part]:
    """The place of a queued job, and when the scheduler expects it to begin."""
    if vitals.position is not None:
        yield Part(f"place {text.count(vitals.position)} in its queue", 3)
    if vitals.starts_at is not None:
        yield Part(f"start {_expected(vitals.starts_at, now)}", 2)
    elif vitals.state is State.QUEUED and vitals.seen_at is not None:
        yield Part("start not known", 7)


def reason(vitals: Vitals) -> Iterator[Part]:
    """Why it waits, or how it ended."""
    step = vitals.step
    if step is not None and vitals.state is not State.RUNNING and (why := reason_of(step)):
        yield Part(f"{step.step}: {why}", 6)


def _expected(at: float, now: float) -> str:
    """`at 14:05, in 2h10m`, as the scheduler estimates it."""
    if at <= now:
        return "any moment"
    clock = time.strftime("%H:%M" if at - now < 86400 else "%a %H:%M", time.localtime(at))
    return f"about {clock}, in {text.duration(at - now, rough=True)}"


def _attempt(vitals: Vitals) -> Iterator[Part]:
    if vitals.attempt is not None:
        number, planned = vitals.attempt
        yield Part(f"attempt {number}" + (f" of {planned}" if planned else ""), 6)


def _age(vitals: Vitals, now: float) -> Iterator[Part]:
    """How old the word of the scheduler is, where that matters."""
    if vitals.silent:
        since = f", it was asked {text.age(vitals.seen_at, now)}" if vitals.seen_at is not None else ""
        yield Part(f"{vitals.silent}{since}", 3)
    elif vitals.seen_at is not None and now - vitals.seen_at > OLD_S and not vitals.state.over:
        yield Part(f"as of {text.age(vitals.seen_at, now)}", 3)
