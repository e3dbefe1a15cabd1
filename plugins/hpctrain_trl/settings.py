"""Every setting of the trainer, once: flags, the JSON file and `[train.trl]` have these names.

They are the names that Hugging Face's trainers use, where those have one. Standard library only: the
control plane reads this module too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints


def _is(default: Any, about: str, **facts: Any) -> Any:
    """A field with its sentence; `least` and `most` bound it, `also` are its names in other tools; who may
    set it is `plan_only` or `job_only`."""
    metadata = {"about": about, **facts}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, eq=False, repr=False)
class Settings:
    """Where a default is empty or 0, the trainer chooses, and prints what and why."""

    method: Literal["sft", "lora", "pretrain"] = _is(
        "sft",
        "what is trained",
        instead={
            "qlora": "lora keeps the weights in 16 bits: nothing here trains on quantised ones",
            "dpo": 'preferences are no method of trl here: use = "neox" trains on them, or "command"',
            "grpo": 'reinforcement learning is no method of trl here: use = "command" starts your program',
            "full": 'sft trains all weights: method = "sft"',
        },
    )
    model: str = _is("model", "folder or hub name of the model")
    tokenizer: str = _is("", "folder of the tokenizer; empty: the model's")
    from_scratch: bool = _is(False, "start from random weights of the model's shape")
    config: Mapping[str, Any] = _is({}, "the model's shape, instead of its config.json")
    dtype: Literal["auto", "float32", "bfloat16"] = _is("auto", "type of the weights")
    attention: Literal["auto", "eager", "sdpa", "flash_attention_2"] = _is("auto", "implementation")

    train_dataset: str = _is("dataset", "PATH or NAME of the training data, with :SPLIT")
    train_subset: str = _is("", "configuration of the training data")
    train_source_field: str = _is("", "field of the prompt, for parallel data")
    train_target_field: str = _is("", "field of the answer, for parallel data")
    eval_dataset: str = _is("", "PATH or NAME of the evaluation data, with :SPLIT")
    eval_subset: str = _is("", "configuration of the evaluation data")
    eval_source_field: str = _is("", "like train_source_field; empty: the same")
    eval_target_field: str = _is("", "like train_target_field; empty: the same")
    text_field: str = _is("text", "field of plain text")
    messages_field: str = _is("messages", "field of chat messages")
    max_length: int = _is(
        1024,
        "tokens of the longest sequence",
        least=1,
        also=("seq_len", "seq_length", "max_seq_length", "context_length"),
    )
    packing: Literal["auto", "on", "off"] = _is("auto", "several rows in one sequence")
    group_by_length: bool = _is(False, "batches of rows of like length")

    max_steps: int = _is(
        0, "optimizer steps; 0: num_train_epochs decides", least=0, also=("steps", "num_steps", "train_steps")
    )
    num_train_epochs: float = _is(
        0.0, "passes over the data; 0: max_steps decides", least=0, also=("epochs", "num_epochs", "epoch")
    )
    per_device_train_batch_size: int = _is(
        8,
        "rows of one rank in one pass",
        least=1,
        also=("batch_size", "train_batch_size", "micro_batch_size"),
    )
    per_device_eval_batch_size: int = _is(
        8, "rows of one rank when evaluating", least=1, also=("eval_batch_size",)
    )
    gradient_accumulation_steps: int = _is(
        1,
        "passes before one step",
        least=1,
        also=("grad_accum", "accumulation_steps", "gradient_accumulation"),
    )
    learning_rate: float = _is(2e-5, "peak learning rate", least=0, also=("lr",))
    lr_scheduler_type: Literal["linear", "cosine", "constant", "constant_with_warmup", "polynomial"] = _is(
        "linear", "how the rate falls", also=("scheduler", "lr_scheduler")
    )
    warmup_steps: int = _is(0, "steps of rising rate", least=0, also=("warmup",))
    warmup_ratio: float = _is(0.0, "the same as a share of all steps", least=0, most=1)
    weight_decay: float = _is(0.0, "decay of AdamW", least=0)
    max_grad_norm: float = _is(1.0, "norm at which gradients are clipped", least=0)
    seed: int = _is(42, "seed of weights and order", least=0)

    lora_r: int = _is(16, "rank of the adapters", least=1)
    lora_alpha: int = _is(32, "scale of the adapters", least=1)
    lora_dropout: float = _is(0.0, "dropout before the adapters", least=0, most=1)
    lora_target_modules: tuple[str, ...] = _is(("all-linear",), "which layers get adapters")

    activation_checkpointing: bool = _is(False, "recompute activations instead of keeping them")
    compile: bool = _is(False, "torch.compile")
    zero_stage: Literal[0, 1, 2, 3] = _is(0, "DeepSpeed ZeRO stage; 0: without DeepSpeed")
    fsdp: bool = _is(False, "share weights, gradients and moments among ranks by torch's FSDP2")

    logging_steps: int = _is(10, "steps between rows of metrics", least=1)
    eval_steps: int = _is(0, "steps between evaluations; 0: at the end", least=0)
    save_steps: int = _is(0, "steps between checkpoints; 0: by time and at the end", least=0)
    generate_eval: Literal["", "exact", "sacrebleu"] = _is("", "generate answers before and after")
    generate_rows: int = _is(200, "how many rows of the evaluation data to answer", least=1)
    report_to: Literal["", "wandb", "tensorboard"] = _is("", "a tracker")
    wandb_project: str = _is("", "project of Weights & Biases; naming it turns the tracker on")
    run_name: str = _is("", "name of the run at the tracker")

    ranks: Literal["per_gpu", "per_node"] = _is(
        "per_gpu", "who starts the ranks: the scheduler, or torchrun on each node", plan_only=True
    )
    processes_per_node: int = _is(
        0, "ranks of torchrun on one node; 0: one for each GPU", least=0, plan_only=True
    )

    deepspeed: str = _is("", "your own DeepSpeed JSON", job_only=True)
    save_every_s: int = _is(0, "seconds between checkpoints", least=0, job_only=True)
    save_total_limit: int = _is(3, "checkpoints that stay", least=1, job_only=True)
    resume: str = _is("auto", "auto, never or a checkpoint", job_only=True)
    peak_tflops: float = _is(0.0, "peak of one GPU, the basis of MFU", least=0, job_only=True)
    run_dir: str = _is("", "where metrics.jsonl goes; empty: $HPC_RUN or here", job_only=True)
    output_dir: str = _is(
        "", "where checkpoints go; empty: $HPC_CHECKPOINTS or RUN_DIR/checkpoints", job_only=True
    )


FIELDS = {f.name: f for f in fields(Settings)}
CHECKPOINT = r"checkpoint-(?P<step>\d+)"
CHECKPOINT_LAST = "trainer_state.json"
"""The file of a checkpoint that is written last: without it the checkpoint is cut."""
ABOUT_DATA = (
    "method", "text_field", "messages_field",
    *(f"{side}_{end}" for side in ("train", "eval") for end in ("dataset", "source_field", "target_field")),
)  # fmt: skip
"""The settings that decide which fields of the data are read: `hpctrain_trl.fields`."""

Fault = tuple[str, str]
"""A field and what is wrong with it."""


@cache
def types() -> Mapping[str, Any]:
    """The type of each field of the settings, by name."""
    return get_type_hints(Settings)


def out_of_bounds(settings: Settings) -> list[Fault]:
    """Every value that its own field does not allow."""
    faults = []
    for name, kind in types().items():
        value, facts = getattr(settings, name), FIELDS[name].metadata
        if get_origin(kind) is Literal and value not in get_args(kind):
            choices = ", ".join(repr(choice) for choice in get_args(kind))
            faults.append((name, f"{name} is {value!r}, but only {choices} exist"))
        elif isinstance(value, float) and not math.isfinite(value):
            faults.append((name, f"{name} is {value}, but a finite number is needed"))
        elif "least" in facts and value < facts["least"]:
            faults.append((name, f"{name} is {value}, but at least {facts['least']} is needed"))
        elif "most" in facts and value > facts["most"]:
            faults.append((name, f"{name} is {value}, but at most {facts['most']} is possible"))
    return faults


def libraries(settings: Any) -> list[str]:
    """What must be installed for these settings; trl brings torch, transformers and datasets with it."""
    trackers = {settings.report_to, "wandb" if settings.wandb_project else ""}
    conditions = {
        "trl": True,
        "peft": settings.method == "lora",
        "deepspeed": bool(settings.zero_stage or getattr(settings, "deepspeed", "")),
        "wandb": "wandb" in trackers,
        "tensorboard": "tensorboard" in trackers,
        "sacrebleu": settings.generate_eval == "sacrebleu",
    }
    return [name for name, needed in conditions.items() if needed]


def together(settings: Any) -> list[Fault]:
    """Every setting that contradicts another; also of the plan's options, which have the same names."""
    faults = []
    if settings.max_steps and settings.num_train_epochs:
        faults.append(("max_steps", "max_steps and num_train_epochs are both set; keep one"))
    if settings.warmup_steps and settings.warmup_ratio:
        faults.append(("warmup_steps", "warmup_steps and warmup_ratio are both set; keep one"))
    if settings.max_steps and settings.warmup_steps >= settings.max_steps:
        message = f"warmup_steps is {settings.warmup_steps}, not below max_steps {settings.max_steps}"
        faults.append(("warmup_steps", f"{message}: the learning rate never reaches its peak"))
    for side in ("train", "eval"):
        source, target = (getattr(settings, f"{side}_{end}_field") for end in ("source", "target"))
        if bool(source) != bool(target):
            missing = f"{side}_{'target' if source else 'source'}_field"
            faults.append((missing, f"{missing} is missing: parallel data needs both fields"))
    if settings.generate_eval and not settings.eval_dataset:
        faults.append(("eval_dataset", "generate_eval needs eval_dataset: there is nothing to answer"))
    if settings.fsdp and settings.zero_stage:
        faults.append(("fsdp", "fsdp and zero_stage both share the model among ranks; keep one"))
    if settings.method == "lora" and settings.from_scratch:
        faults.append(("from_scratch", "LoRA adapts trained weights; from_scratch has none"))
    return faults
