"""One training run, from settings to exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpctrain_job.arithmetic.model_shape import Shape, hardware
from hpctrain_job.signals import EXIT_SAVED, Stop
from hpctrain_trl import arguments, environment
from hpctrain_trl.environment import Ranks
from hpctrain_trl.errors import (
    EXIT_CONFIG,
    EXIT_DIVERGED,
    EXIT_MEMORY,
    EXIT_PORT,
    BadConfig,
    Diverged,
)
from hpctrain_trl.report import Report
from hpctrain_trl.settings import Settings

_NEVER = 10**9
"""Steps between saves or evaluations that only happen at the end."""


def main(argv: Sequence[str] | None = None) -> int:
    """Train; 0 is done, 75 saved on a signal, 78 a setting is wrong.

    65 is a loss that is no number, 69 a port that is taken, 70 too little memory.
    """
    try:
        return run(arguments.read(sys.argv[1:] if argv is None else argv))
    except BadConfig as error:
        print(error.text, file=sys.stderr)
        return EXIT_CONFIG
    except Diverged as error:
        print(f"error[diverged]: {error}", file=sys.stderr)
        return EXIT_DIVERGED
    except (MemoryError, RuntimeError) as error:
        if _port_taken(error):
            port = os.environ.get("MASTER_PORT")
            print(f"error[port]: another process listens on MASTER_PORT {port}", file=sys.stderr)
            print("  hint: start again: the port of a job follows from its number", file=sys.stderr)
            return EXIT_PORT
        if not _out_of_memory(error):
            raise
        print(f"error[memory]: {str(error).splitlines()[0]}", file=sys.stderr)
        print(
            "  hint: per_device_train_batch_size smaller, gradient_accumulation_steps larger", file=sys.stderr
        )
        return EXIT_MEMORY


def run(settings: Settings) -> int:
    """Train as the settings say: prepare, train, evaluate and save."""
    stop = Stop().listen()
    ranks = environment.ranks()
    environment.check_installed(settings)
    environment.one_visible_gpu()
    run_folder = Path(settings.run_dir or os.environ.get("HPC_RUN") or ".")
    report = Report(run_folder / "run.json", ranks.first)
    job = environment.until_the_end(Job(settings, ranks, run_folder, report))
    job.prepare(stop)
    code = job.train()
    report.add(end={"code": code, "step": job.trainer.state.global_step, "signal": stop.name})
    ranks.leave()
    return code


class Job:
    """The parts of one run, made in the order in which they need each other."""

    def __init__(self, settings: Settings, ranks: Ranks, run_folder: Path, report: Report) -> None:
        self.settings = settings
        self.ranks = ranks
        self.run_folder = run_folder
        self.report = report
        self.output = Path(
            settings.output_dir or os.environ.get("HPC_CHECKPOINTS") or run_folder / "checkpoints"
        )

    def prepare(self, stop: Stop) -> None:
        """Everything up to the first step; what can be wrong is found here."""
        import transformers

        from hpctrain_trl import compat, data, evaluate, model, resuming

        compat.quiet()
        settings = self.settings
        choices = model.choose(settings, self.ranks.say)
        self.tokenizer = model.tokenizer(settings)
        chat = bool(self.tokenizer.chat_template) and settings.method != "pretrain"
        rows = data.load(settings, "train", chat)
        self.held_out = data.load(settings, "eval", chat) if settings.eval_dataset else None
        evaluate.check(settings, self.held_out)
        only_answers = "messages" in rows.column_names and "{% generation" in self.tokenizer.chat_template
        # Before the model: under ZeRO-3 this object decides that each rank loads only its part.
        plan = compat.arguments(_plan(settings, choices, self.output, only_answers))
        self.ranks.say(f"{self.ranks.world} ranks; rank 0 on {compat.joined(plan)}")
        transformers.set_seed(settings.seed)
        network = model.load(settings, choices, self.tokenizer)
        self.checkpoint = resuming.start(settings, self.output, network, self.ranks)
        self.trainer = self._trainer(network, plan, rows, stop, recompute=choices.recompute)
        self._check_warmup(plan)
        self._describe(model.shape_of(network))

    def _trainer(self, network: Any, plan: Any, rows: Any, stop: Stop, *, recompute: bool) -> Any:
        from transformers import PrinterCallback
        from trl import SFTTrainer

        from hpctrain_trl import callbacks, model, optimizer

        shape = Shape.of(model.shape_of(network))
        lora = self.settings.method == "lora"
        length = self.settings.max_length
        self.flops = shape.flops_per_token(length, frozen=lora) if shape else None
        self.hardware = hardware(frozen=lora) if recompute else 1.0
        peak = self.settings.peak_tflops
        self.saving = callbacks.Saving(stop, self.settings.save_every_s, self.ranks)
        self.manifests = callbacks.Manifests(self.ranks, self.settings.save_total_limit)
        trainer = SFTTrainer(
            model=network,
            args=plan,
            train_dataset=rows,
            eval_dataset=self.held_out,
            processing_class=self.tokenizer,
            peft_config=model.adapters(self.settings),
            optimizer_cls_and_kwargs=optimizer.compiled(self.settings, plan),
            callbacks=[
                callbacks.Metrics(
                    self.run_folder / "metrics.jsonl", self.ranks, self.flops, peak, self.hardware
                ),
                callbacks.Optimizer(self.ranks),
                callbacks.Alarm(),
                self.saving,
                self.manifests,
            ],
        )
        trainer.remove_callback(PrinterCallback)
        return trainer

    def _check_warmup(self, plan: Any) -> None:
        """Where passes over the data decide, only now is it known how many steps there are."""
        rows = len(self.trainer.train_dataset)
        batch_rows = plan.per_device_train_batch_size * plan.gradient_accumulation_steps * self.ranks.world
        steps = plan.max_steps if plan.max_steps > 0 else -(-rows // batch_rows) * plan.num_train_epochs
        warmup = self.settings.warmup_steps
        if warmup >= steps:
            message = f"warmup_steps is {warmup}, and {rows} rows make {steps:.0f} steps"
            raise BadConfig(
                "warmup", f"{message}: the learning rate never reaches its peak", "warmup_ratio = 0.03"
            )

    def _describe(self, shape: dict[str, Any]) -> None:
        weights = list(self.trainer.model.parameters())
        trained = sum(_size(p) for p in weights if p.requires_grad)
        self.report.add(
            peak=self.settings.peak_tflops or None,
            convention="full",
            kind="mfu",
            flops_per_token=self.flops,
            hardware=self.hardware,
            parameters=sum(map(_size, weights)),
            trained=trained,
            world=self.ranks.world,
            model_type=shape.get("model_type"),
            versions=environment.versions(),
        )

    def train(self) -> int:
        """The steps, with answers before and after; the exit code."""
        if self.checkpoint is None:
            self._answers("before")
        self.trainer.train(resume_from_checkpoint=self.checkpoint and str(self.checkpoint))
        self.manifests.wait()
        if self.saving.stopped:
            return EXIT_SAVED
        self._save()
        self._answers("after")
        return 0

    def _save(self) -> None:
        from hpctrain_trl import compat

        folder = self.run_folder / "model"
        self.trainer.save_model(str(folder))
        if self.ranks.first:
            self.tokenizer.save_pretrained(folder)
            compat.readable_by_both(folder)

    def _answers(self, when: str) -> None:
        if not self.settings.generate_eval or self.held_out is None:
            return
        from hpctrain_trl import evaluate

        network = self.trainer.accelerator.unwrap_model(self.trainer.model)
        scores = evaluate.measure(network, self.tokenizer, self.held_out, self.settings, self.ranks)
        self.report.add(answers={**self.report.values.get("answers", {}), when: scores})
        self.ranks.say(f"answers {when} training: {scores['exact']:.1%} of {scores['of']} rows exact")


def _plan(settings: Settings, choices: Any, output: Path, only_answers: bool) -> dict[str, Any]:
    """The settings in the words of `SFTConfig`, newer spelling."""
    gpus = environment.accelerator()
    held_out = bool(settings.eval_dataset)
    return {
        "output_dir": str(output),
        "max_steps": settings.max_steps or -1,
        "num_train_epochs": settings.num_train_epochs or 1.0,
        "per_device_train_batch_size": settings.per_device_train_batch_size,
        "per_device_eval_batch_size": settings.per_device_eval_batch_size,
        "gradient_accumulation_steps": settings.gradient_accumulation_steps,
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": settings.lr_scheduler_type,
        "warmup_steps": settings.warmup_steps,
        "warmup_ratio": settings.warmup_ratio,
        "weight_decay": settings.weight_decay,
        "max_grad_norm": settings.max_grad_norm,
        "seed": settings.seed,
        "data_seed": settings.seed,
        "max_length": settings.max_length,
        "packing": choices.packing,
        "packing_strategy": choices.strategy,
        "assistant_only_loss": only_answers,
        "train_sampling_strategy": "group_by_length" if settings.group_by_length else "random",
        "activation_checkpointing": choices.recompute and not settings.fsdp,
        "torch_compile": choices.compile,
        **_sharing(settings, choices),
        "bf16": gpus is not None and gpus.is_bf16_supported(),
        "use_cpu": gpus is None,
        "dataloader_pin_memory": gpus is not None,
        "ddp_find_unused_parameters": False,
        "deepspeed": settings.deepspeed or _zero(settings.zero_stage),
        "logging_steps": settings.logging_steps,
        "logging_nan_inf_filter": False,
        "logging_first_step": True,
        "eval_strategy": "steps" if held_out else "no",
        "eval_steps": settings.eval_steps or _NEVER,
        "save_strategy": "steps",
        "save_steps": settings.save_steps or _NEVER,
        "include_num_input_tokens_seen": "all",
        "disable_tqdm": True,
        "report_to": settings.report_to or ("wandb" if settings.wandb_project else "none"),
        "run_name": settings.run_name or None,
    }


def _sharing(settings: Settings, choices: Any) -> dict[str, Any]:
    """FSDP2 in the words of the trainer; it recomputes activations itself, layer by layer."""
    if not settings.fsdp:
        return {}
    return {
        "fsdp": "full_shard auto_wrap",
        "fsdp_config": {"version": 2, "activation_checkpointing": choices.recompute},
    }


def _zero(stage: int) -> dict[str, Any] | None:
    """DeepSpeed's configuration of a ZeRO stage; the batch sizes come from the trainer."""
    if not stage:
        return None
    auto = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "train_batch_size")
    return {
        "zero_optimization": {"stage": stage, "stage3_gather_16bit_weights_on_model_save": stage == 3},
        "zero_allow_untested_optimizer": True,
        "gradient_clipping": "auto",
        "bf16": {"enabled": "auto"},
        **dict.fromkeys(auto, "auto"),
    }


def _size(weight: Any) -> int:
    """Elements of a weight, also where ZeRO-3 holds only a part of it here."""
    return int(getattr(weight, "ds_numel", 0) or weight.numel())


def _port_taken(error: BaseException) -> bool:
    """What rank 0 hears from torch's rendezvous; DeepSpeed and the libraries hand it on."""
    return "EADDRINUSE" in str(error) or "address already in use" in str(error).lower()


def _out_of_memory(error: BaseException) -> bool:
    """CUDA and ROCm say the first, the processor's allocator the second."""
    phrases = ("out of memory", "can't allocate memory")
    return isinstance(error, MemoryError) or any(words in str(error).lower() for words in phrases)
