"""Let a trainer's own code print its progress: `python -m tests.trainers.external.say TRAINER`.

The values are ours, every character around them is the trainer's. Run like `ask.py`, by an interpreter that
can import the trainer; what is printed is `data/metric_logs/TRAINER.log`.
"""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace
from typing import Any

from tests.trainers.external.ask import absent, without_flash_attention
from tests.trainers.external.cases import DATA, NEOX_FILES

STEPS = ((10, 10.87654, 1.875e-06), (20, 7.25, 3.75e-06), (30, 4.125, 5.625e-06))
"""Steps, losses and rates of every log."""


def nanotron() -> None:
    """`LoggerWriter` with the entries of `train_step_logs`."""
    absent("flash_attn", "triton", "torchtyping", "grouped_gemm")
    from nanotron import logging as said
    from nanotron.logging.base import set_logger_verbosity_format

    _ranks(1)
    sizes = ("expert", "context", "data", "pipeline", "tensor")
    set_logger_verbosity_format("info", SimpleNamespace(**{f"{size}_parallel_size": 1 for size in sizes}))
    for step, loss, rate in STEPS:
        entries = [
            said.LogItem("consumed_tokens", 65536 * step, "human_format"),
            said.LogItem("time_per_iteration_ms", 1229.7, "human_format"),
            said.LogItem("tokens_per_sec", 53294.3, "human_format"),
            said.LogItem("tokens_per_sec_per_gpu", 6661.8, "human_format"),
            said.LogItem("global_batch_size", 65536, "human_format"),
            said.LogItem("grad_norm", 1.2345, "human_format"),
            said.LogItem("lm_loss", loss, "human_format"),
            said.LogItem("lr", rate, "human_format"),
            said.LogItem("model_tflops_per_gpu", 5.4123, "human_format"),
            said.LogItem("eta", "0:30:10"),
        ]
        said.LoggerWriter(global_step=1500).add_scalars_from_list(entries, step)


def _ranks(count: int) -> None:
    """Ranks of which only this one exists."""
    from torch import distributed
    from torch.testing._internal.distributed.fake_pg import FakeStore

    distributed.init_process_group("fake", rank=0, world_size=count, store=FakeStore())


def neox() -> None:
    """`training_log` with the arguments of the Isambard document, whose activations are checkpointed."""
    without_flash_attention()
    import torch
    from megatron import logging as megatron
    from megatron.neox_arguments import NeoXArgs

    _ranks(64)
    files = [str(DATA / name) for name in NEOX_FILES]
    arguments: Any = NeoXArgs.from_ymls(files, overwrite_values={"global_num_gpus": 64})
    arguments.log_interval, arguments.padded_vocab_size = 10, 50304
    timers = _Timers()
    for step, loss, rate in STEPS:
        megatron.training_log(
            neox_args=arguments,
            timers=timers,
            loss_dict={"lm_loss": torch.tensor(loss)},
            total_loss_dict={"lm_loss": torch.tensor(loss * 9.0)},
            learning_rate=rate,
            iteration=step,
            loss_scale=1.0,
            report_memory_flag=False,
            skipped_iter=0,
            model=None,
            optimizer=None,
            noise_scale_logger=None,
        )


class _Timers:
    """NeoX's timers, each of 41.93 seconds, for ten steps."""

    timers: dict[str, object] = {}  # noqa: RUF012  (a name that training_log looks into)

    def __call__(self, name: str) -> Any:
        return SimpleNamespace(elapsed=lambda: 41.93)

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


def automodel() -> None:
    """`log_train_metrics` and `log_val_metrics` of the fine-tuning recipe."""
    import torch
    from nemo_automodel.components.loggers.log_utils import setup_logging
    from nemo_automodel.components.loggers.metric_logger import MetricsSample
    from nemo_automodel.recipes.llm.train_ft import TrainFinetuneRecipeForNextTokenPrediction as Recipe

    torch.cuda.reset_peak_memory_stats = lambda *_: None
    setup_logging()
    quiet = SimpleNamespace(log=lambda *_: None)
    recipe: Any = SimpleNamespace(
        dist_env=SimpleNamespace(is_main=True),
        step_scheduler=SimpleNamespace(is_remote_logging_step=False, step=0),
        metric_logger_train=quiet,
        comet_logger=None,
    )
    for step, loss, rate in STEPS:
        values = {"loss": loss, "grad_norm": 1.2345, "lr": rate, "mem": 61.2, "tps": 12472.87}
        more = {"tps_per_gpu": 3118.2, "num_label_tokens": 11604}
        Recipe.log_train_metrics(recipe, MetricsSample(step=step, epoch=0, metrics=values | more))
    held_out = {"val_loss": 3.5431, "lr": STEPS[-1][2], "num_label_tokens": 1472}
    Recipe.log_val_metrics(recipe, "default", MetricsSample(step=30, epoch=0, metrics=held_out), quiet)


if __name__ == "__main__":
    logging.captureWarnings(True)
    {"nanotron": nanotron, "neox": neox, "automodel": automodel}[sys.argv[1]]()
