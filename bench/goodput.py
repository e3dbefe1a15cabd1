"""Goodput of chains by the simulator of the tests: `python -m bench.goodput`, written beside this file.

The judge and the interval are the product's own; queue, nodes, disk and faults are made up, from a seed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hpctrain.ui.picture import Curve, picture
from tests.chain.simulator import optimum
from tests.chain.test_goodput import CITED, DAY, MACHINES, Trial, count, goodput, safe

FAULTS = 3000
GATE, PUBLISHED = 0.95, 0.97
ALONE = (0.7, 0.15, 0.0, 0.15)
"""Nobody preempts a machine of one's own."""
TEXT = """\
# What a chain makes of its nodes

`python -m bench.goodput`: the simulator of `tests/chain` drives the product's judge, at the interval that
the plan recommends, through {faults:,} seeded faults a row. Of the faults 60 % are nodes (a third of them
silent), 15 % hangs, found after 45 s, 15 % preemptions and 10 % programs; one in 20 submissions from
inside is refused, one in 20 checkpoints damaged; jobs have a day. One fault comes for 1,000 accelerators
and day. Goodput is the share of the time on nodes that was a step of the result; time in a queue is not
counted. The best is a Monte-Carlo search for the interval, under the same rate without limits of time,
hangs and damage. No run was lost, none needed a person, no job was started twice, and nothing went on
from a checkpoint that does not verify.

| nodes x accelerators | save | start | every | goodput | best | share (at least {gate}) |
|---|---|---|---|---|---|---|
{rows}

## With spare nodes

9,600 accelerators on a machine of one's own: no preemption and no limit of a job's time, one fault in
2.78 hours at 16,000 (Meta's rate, as [ByteRobust](https://arxiv.org/abs/2509.16293) cites it; it reports
0.97 for three months of such a job), 10 minutes to start a job, and spare nodes that take over inside of
it. How long that takes is a parameter: guards were tried at 3 to 4 s and the start of the training's own
libraries.

| restart inside | save that stalls 1 s | 5 s | 10 s | 60 s |
|---|---|---|---|---|
{spares}

Without spares, each fault a new job that starts in 10 minutes and waits for no queue: {without}. With
spares, 5 s of stall and jobs of a day instead of one: {days}. So {published} asks for saves that stall no
longer than 5 s, and for restarts within a minute.

![Goodput against the number of accelerators](goodput.svg)
"""


def main() -> int:
    """Simulate and write; 1 where a gate is missed."""
    rows, shares = [], []
    for name, accelerators in MACHINES.items():
        for save, start in ((60, 600), (10, 120)):
            trial = Trial(accelerators, 1000 * DAY / accelerators, save, start)
            share, best = _goodput(trial), optimum(save, start, trial.between)
            shares.append(share / best)
            cells = (name, f"{save} s", f"{start} s", f"{trial.every} s", f"{share:.3f}", f"{best:.3f}")
            rows.append("| " + " | ".join((*cells, f"{share / best:.3f}")) + " |")
    spares, reached = [], 0.0
    for restart in (30, 60, 120, 300):
        values = [_alone(save, restart) for save in (1, 5, 10, 60)]
        reached = values[1] if restart == 60 else reached
        spares.append(f"| {restart} s | " + " | ".join(f"{value:.3f}" for value in values) + " |")
    text = TEXT.format(
        faults=FAULTS, gate=GATE, rows="\n".join(rows), spares="\n".join(spares), published=PUBLISHED,
        without=f"{_alone(5, 60, spares=0):.3f}", days=f"{_alone(5, 60, time=DAY):.3f}",
    )  # fmt: skip
    here = Path(__file__)
    here.with_suffix(".md").write_text(text)
    here.with_suffix(".svg").write_text(_plot())
    print(text)
    return 0 if min(shares) >= GATE and reached >= PUBLISHED else 1


def _goodput(trial: Trial, faults: int = FAULTS) -> float:
    runs = trial.runs(faults)
    safe(runs)
    assert count(runs) >= faults
    return goodput(runs)


def _alone(save: float, restart: float, spares: int = 200, time: float = 90 * DAY) -> float:
    between = CITED / 9600
    return _goodput(Trial(9600, between, save, 600, spares, restart, time, ALONE))


def _plot() -> str:
    """Over accelerators, in thousands: what chains have, and what the best interval could have had."""
    curves = []
    for save, start in ((10, 120), (60, 600)):
        sizes = (0.256, 1, 2, 4, 8, 16, 32, 50, 75.2)
        trials = [Trial(round(1000 * size), DAY / size, save, start) for size in sizes]
        label = f"save {save} s, start {start // 60} min"
        curves.append(Curve(label, sizes, [_goodput(trial, 800) for trial in trials]))
        curves.append(Curve(f"{label}, best", sizes, [optimum(save, start, t.between) for t in trials]))
    return picture("goodput of a chain without spares", curves, x_name="thousand accelerators")


if __name__ == "__main__":
    sys.exit(main())
