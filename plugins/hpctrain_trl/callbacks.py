"""What happens beside the training loop: metrics, checkpoints on time and on signal, and alarms."""

from __future__ import annotations

import math
import threading
import time
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from hpctrain_job import keeping, metrics, resume
from hpctrain_job.signals import Stop
from hpctrain_trl import compat
from hpctrain_trl.environment import Ranks
from hpctrain_trl.errors import Diverged
from hpctrain_trl.optimizer import name
from hpctrain_trl.settings import CHECKPOINT, CHECKPOINT_LAST

_ALARM = 3
"""So many rows in a row without a number for the loss end the run."""


class Metrics(TrainerCallback):
    """Writes `metrics.jsonl` and one line of progress; only on rank 0.

    Rates are of the window since the last row and leave out evaluations and checkpoints.
    """

    def __init__(
        self,
        path: Path,
        ranks: Ranks,
        flops_per_token: float | None,
        peak_tflops: float,
        hardware: float = 1.0,
    ) -> None:
        self.path = path
        self.ranks = ranks
        self.flops_per_token = flops_per_token
        self.peak = peak_tflops
        self.hardware = hardware
        self.mark = (0.0, 0)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._mark(state)

    on_evaluate = on_save = on_train_begin

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if not self.ranks.first:
            return
        now = {"time": round(time.time(), 3), "step": state.global_step}
        if "loss" in logs:
            row = {**now, **self._training(state, logs)}
            metrics.append(self.path, row)
            print(_progress(row, state.max_steps), flush=True)
            self._mark(state)
        elif any(key.startswith("eval_") for key in logs):
            metrics.append(self.path, {**now, **_evaluation(logs)})

    def _training(self, state: Any, logs: dict[str, float]) -> dict[str, float | None]:
        since, tokens = self.mark
        rate = (state.num_input_tokens_seen - tokens) / max(time.monotonic() - since, 1e-9)
        tflops = self.flops_per_token and rate * self.flops_per_token / self.ranks.world / 1e12
        return {
            "loss": logs["loss"],
            "lr": logs.get("learning_rate"),
            "grad_norm": logs.get("grad_norm"),
            "tokens": state.num_input_tokens_seen,
            "tokens_per_s": round(rate, 1),
            "tflops_per_gpu": tflops and round(tflops, 6),
            **metrics.utilisation(tflops, self.peak, self.hardware),
        }

    def _mark(self, state: Any) -> None:
        self.mark = (time.monotonic(), state.num_input_tokens_seen)


class Saving(TrainerCallback):
    """Saves when it is time and when somebody asks for a stop, at the end of a step, on all ranks alike."""

    def __init__(self, stop: Stop, every_s: int, ranks: Ranks) -> None:
        self.stop = stop
        self.every_s = every_s
        self.ranks = ranks
        self.stopped = False
        self.saved_at = time.monotonic()
        self._group: Any = None

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        due = bool(self.every_s) and time.monotonic() - self.saved_at >= self.every_s
        self.stopped, due = self._agreed(bool(self.stop), due)
        control.should_save = control.should_save or due or self.stopped
        if self.stopped and not control.should_training_stop:
            self.ranks.say(f"saving after step {state.global_step}, then stopping")
            control.should_log = control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.saved_at = time.monotonic()

    def _agreed(self, *flags: bool) -> tuple[bool, ...]:
        """Whether any rank raised each flag: a signal reaches ranks at different steps.

        A gloo group of its own, so that no GPU has to wait for the answer.
        """
        if self.ranks.world == 1:
            return flags
        import torch
        from torch import distributed

        self._group = self._group or distributed.new_group(backend="gloo")
        shared = torch.tensor(flags, dtype=torch.int32)
        distributed.all_reduce(shared, op=distributed.ReduceOp.MAX, group=self._group)
        return tuple(bool(flag) for flag in shared.tolist())


class Manifests(TrainerCallback):
    """Writes a checkpoint's manifest beside the training, once every rank has written its part.

    Then old ones go, never the last that is whole. First, the tokenizer inside is put in the form that both
    generations read.
    """

    def __init__(self, ranks: Ranks, keep: int) -> None:
        self.ranks = ranks
        self.keep = keep
        self._writer: threading.Thread | None = None

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.ranks.world > 1:
            from torch import distributed

            distributed.barrier()
        if self.ranks.first:
            self.wait()
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            compat.readable_by_both(folder)
            self._writer = threading.Thread(target=_vouch, args=(folder, self.keep))
            self._writer.start()

    def wait(self) -> None:
        """Until the last manifest is written."""
        if self._writer:
            self._writer.join()


class Optimizer(TrainerCallback):
    """Says which optimizer takes the steps, once it is made."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks

    def on_train_begin(self, args: Any, state: Any, control: Any, **event: Any) -> None:
        self.ranks.say(f"optimizer {name(event.get('optimizer'))}")


class Alarm(TrainerCallback):
    """Ends a run whose loss is no number any more."""

    def __init__(self) -> None:
        self.count = 0

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if "loss" not in logs:
            return
        self.count = 0 if math.isfinite(logs["loss"]) else self.count + 1
        if self.count >= _ALARM:
            message = f"the loss is {logs['loss']} in {_ALARM} rows up to step {state.global_step}"
            raise Diverged(f"{message}; a smaller learning_rate or longer warm-up may help")


def _vouch(folder: Path, keep: int) -> None:
    resume.write_manifest(folder)
    keeping.retain(keeping.Saves(folder.parent, CHECKPOINT, CHECKPOINT_LAST), keep)


def _evaluation(logs: dict[str, Any]) -> dict[str, Any]:
    keys = ("eval_loss", "eval_mean_token_accuracy")
    return {key: logs[key] for key in keys if key in logs}


def _progress(row: dict[str, Any], steps: int) -> str:
    parts = [f"step {row['step']}/{steps}", f"loss {row['loss']:.4g}"]
    parts += [f"{key} {row[key]:.4g}" for key in ("lr", "grad_norm") if row[key] is not None]
    return " | ".join([*parts, f"tokens {row['tokens']}", f"tokens_per_s {row['tokens_per_s']:.0f}"])
