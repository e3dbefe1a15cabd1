"""How often a training should save: the interval at which saving costs as much as faults do.

https://doi.org/10.1016/j.future.2004.11.016 (Daly 2006, equation 37), whose first term is Young's of 1974.
"""

from __future__ import annotations

import math

from attrs import frozen

from hpctrain.model.duration import Duration
from hpctrain.model.plan import EarlierRun, Plan
from hpctrain.model.step import Launch
from hpctrain.plan import chain

ASSUMED_SAVE_S = 60.0
ASSUMED_FAULTS = 1.0
"""Per 1,000 accelerators and day: published are 0.4 (16,384 H100 of Llama 3) to 3 (992 A100 of OPT)."""
DAY = 86400.0
ASSUMED_START_S = 600.0
LEAST_IDLE, MOST_IDLE = 3, 30
BY_CHANCE = 1e-6
"""How seldom faults alone may end a chain for want of progress, an attempt."""


@frozen(kw_only=True)
class Advice:
    """The interval, and what it was reckoned from. Times in seconds."""

    every_s: float
    save_s: float
    is_save_measured: bool
    """In an earlier run of the same plan; else it is assumed."""
    between_s: float
    """From one fault to the next."""
    is_between_measured: bool


def advice(plan: Plan, earlier: EarlierRun | None) -> Advice | None:
    """For a training of several jobs; None for all others."""
    step = plan.step_named(chain.TRAIN)
    if step is None or chain.of(plan) is None:
        return None
    launch = step.step.launch
    save = earlier.save_s if earlier else None
    between = earlier.between_faults_s if earlier else None
    save_s, between_s = save or ASSUMED_SAVE_S, between or assumed_between(launch)
    return Advice(
        every_s=best(save_s, between_s),
        save_s=save_s,
        is_save_measured=bool(save),
        between_s=between_s,
        is_between_measured=bool(between),
    )


def assumed_between(launch: Launch) -> float:
    """Seconds between two faults of a job on so many accelerators."""
    return 1000 * DAY / ASSUMED_FAULTS / (launch.nodes * max(1, launch.gpus_per_node))


def patience(every: Duration | None, between_s: float) -> dict[str, float]:
    """How long a chain waits for progress, in the words of `hpctrain_job.chain.decision.Terms`.

    An attempt leaves no newer checkpoint when a fault comes before the first one. So many in a row that
    faults alone would almost never make them end the chain; and failures count as soon where they come in a
    tenth of the time between two faults.
    """
    first = ASSUMED_START_S + (every.seconds if every else best(ASSUMED_SAVE_S, between_s))
    chance = min(0.999, -math.expm1(-first / between_s))
    idle = math.ceil(math.log(BY_CHANCE) / math.log(chance))
    return {"idle": max(LEAST_IDLE, min(MOST_IDLE, idle)), "soon": round(between_s / 10)}


def best(save_s: float, between_s: float) -> float:
    """Daly's interval between the end of one save and the begin of the next."""
    if save_s >= 2 * between_s:
        return between_s
    ratio = save_s / (2 * between_s)
    return math.sqrt(2 * save_s * between_s) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - save_s
