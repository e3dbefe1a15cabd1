"""NeoX's arithmetic of ranks and batches.

Of three numbers it completes the third, but accumulation is 1 where nobody says it: only an explicit null
is completed.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from hpctrain_plugins.trainers.external.config import Config, Fault, Machine

TRAIN, MICRO, STEPS = "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"


@frozen
class Batch:
    """Rows of a step, of a rank's pass, and passes of a step."""

    train: int
    micro: int
    steps: int


def data_parallel(config: Config, machine: Machine) -> int:
    """How many model copies train; 0 where the GPUs cannot be shared out."""
    gpus_per_copy = _size(config, "pipe_parallel_size") * _size(config, "model_parallel_size")
    return machine.gpus // gpus_per_copy if machine.gpus % gpus_per_copy == 0 else 0


def batch(config: Config, dp: int) -> Batch | None:
    """The three numbers as NeoX completes them; None where it has nothing to start from."""
    train, micro = (config.number(key) for key in (TRAIN, MICRO))
    unsaid = STEPS in config.data and config.data[STEPS] is None
    steps = 0 if unsaid else config.number(STEPS, default=1)
    if train and micro:
        return Batch(train, micro, steps or train // micro // dp)
    if train:
        return Batch(train, train // dp // (steps or 1), steps or 1)
    return Batch(micro * (steps or 1) * dp, micro, steps or 1) if micro else None


def faults(config: Config, machine: Machine) -> Iterator[Fault]:
    """Sizes that do not divide, and batches that do not multiply."""
    pp, mp = _size(config, "pipe_parallel_size"), _size(config, "model_parallel_size")
    dp = data_parallel(config, machine)
    if not dp:
        yield Fault(
            code="trainer-world",
            message=f"{machine.gpus} GPUs do not fit pipe_parallel_size {pp} x model_parallel_size {mp}",
            path=("model_parallel_size",) if mp > 1 else ("pipe_parallel_size",),
        )
        return
    sizes = batch(config, dp)
    if sizes is None:
        hint = f"{MICRO}: 4"
        yield Fault(code="trainer-batch", message=f"neither {TRAIN} nor {MICRO} is set", hint=hint)
    elif sizes.train != sizes.micro * sizes.steps * dp or min(sizes.train, sizes.micro, sizes.steps) < 1:
        yield _unequal(config, sizes, dp)


def _unequal(config: Config, sizes: Batch, dp: int) -> Fault:
    message = f"{TRAIN} {sizes.train} is not {sizes.micro} rows x {sizes.steps} passes x {dp} model copies"
    product = max(1, sizes.micro) * max(1, sizes.steps) * dp
    key = TRAIN if config.get(TRAIN) is not None else STEPS
    return Fault(code="trainer-batch", message=message, path=(key,), hint=f"{TRAIN}: {product}")


def _size(config: Config, key: str) -> int:
    return max(1, config.number(key, default=1))
