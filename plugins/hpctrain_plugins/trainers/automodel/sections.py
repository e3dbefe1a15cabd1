"""Keys of Automodel's typed sections, as version 0.7.0 has them, and words that it knows by name.

Since 0.5 each section becomes an object when the recipe starts, and a key that the object does not have
ends the run. `tests/trainers/external/ask.py` asked the real objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from hpctrain_plugins.trainers.external.config import Config, Fault
from hpctrain_plugins.trainers.external.kinds import misfit, unknown
from hpctrain_plugins.trainers.yaml_file import Path

RECIPES = (
    *("TrainFinetuneRecipeForNextTokenPrediction", "TrainFinetuneRecipeForSequenceClassification"),
    *("KnowledgeDistillationRecipeForNextTokenPrediction", "KnowledgeDistillationRecipeForVLM"),
    *("BenchmarkingRecipeForNextTokenPrediction", "FinetuneRecipeForVLM", "FinetuneRecipeForMultimodal"),
    *("PretrainRecipeForMultimodal", "DiffusionGemmaSFTRecipe", "DiffusionLMSFTRecipe"),
    *("TrainDiffusionRecipe", "TrainBiEncoderRecipe", "TrainCrossEncoderRecipe", "MineHardNegativesRecipe"),
    *("EmbeddingDistillRecipe", "TrainEagle1Recipe", "TrainEagle2Recipe", "TrainEagle3Recipe"),
    *("TrainDFlashRecipe", "TrainDFlash2Recipe", "TrainDSparkRecipe", "TrainDominoRecipe"),
    *("TrainJetSpecRecipe", "TrainVispecRecipe", "TrainVispecStage1Recipe"),
)
_OPTIMIZERS = (
    *("ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam"),
    *("RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam"),
)
_SIZES = ("dp_size", "dp_replicate_size", "tp_size", "pp_size", "cp_size", "ep_size")
_STRATEGIES = {
    "fsdp2": (
        *("sequence_parallel", "tp_plan", "patch_is_packed_sequence", "mp_policy", "offload_policy"),
        *("autocast_dtype", "activation_checkpointing_scope", "defer_fsdp_grad_sync", "enable_compile"),
        *("reshard_after_forward", "enable_async_tensor_parallel", "enable_fsdp2_prefetch", "multimodal"),
        *("fsdp2_backward_prefetch_depth", "fsdp2_forward_prefetch_depth"),
    ),
    "ddp": (
        *("activation_checkpointing_scope", "broadcast_buffers", "find_unused_parameters", "static_graph"),
        *("bucket_cap_mb", "gradient_as_bucket_view", "autocast_dtype"),
    ),
}
"""Options of a strategy; those of Megatron's FSDP are not judged here."""
_OF_ANY = ("strategy", *_SIZES, "pipeline", "moe", "activation_checkpointing", "_target_")
_MEGATRON = ("megatron_fsdp", "megatron-fsdp", "mfsdp")
_KEYS: dict[str, tuple[str, ...]] = {
    "step_scheduler": (
        *("global_batch_size", "local_batch_size", "num_epochs", "max_steps", "ckpt_every_steps"),
        *("save_checkpoint_every_epoch", "validate_on_checkpoint", "val_every_steps", "dp_size"),
        *("log_remote_every_steps", "loss_average_window_steps", "gc_every_steps", "start_step"),
        *("start_epoch", "preemption_signal", "dataloader", "_target_"),
    ),
    "lr_scheduler": (
        *("lr_warmup_steps", "lr_decay_steps", "lr_decay_style", "init_lr", "max_lr", "min_lr", "start_wd"),
        *("end_wd", "wd_incr_steps", "wd_incr_style", "use_checkpoint_opt_param_scheduler"),
        *("override_opt_param_scheduler", "wsd_decay_steps", "lr_wsd_decay_style", "_target_"),
    ),
    "checkpoint": (
        *("enabled", "checkpoint_dir", "model_save_format", "model_cache_dir", "model_repo_id", "is_peft"),
        *("save_consolidated", "model_state_dict_keys", "is_async", "wait_for_staging", "cpu_offload"),
        *("allow_legacy_pickle_restore", "dequantize_base_checkpoint", "original_model_root_dir"),
        *("skip_task_head_prefixes_for_base_model", "single_rank_consolidation", "staging_dir"),
        *("v4_compatible", "legacy_paramwrapper_layout", "diffusers_compatible", "best_metric_key"),
        *("consolidation_timeout_minutes", "max_recent_checkpoints", "restore_from", "_target_"),
    ),
    "peft": (
        *("target_modules", "exclude_modules", "match_all_linear", "dim", "alpha", "use_dora", "dropout"),
        *("dropout_position", "lora_A_init", "lora_dtype", "use_memory_efficient_lora", "use_triton"),
        *("moe_rank_scaling", "expert_weight_format", "_target_"),
    ),
}
_ADAMW = ("lr", "betas", "eps", "weight_decay", "amsgrad", "maximize", "foreach", "capturable")
_CHOICES: dict[Path, str] = {
    ("checkpoint", "model_save_format"): "torch_save|safetensors",
    ("lr_scheduler", "lr_decay_style"): "constant|linear|cosine|inverse-square-root|WSD",
}
_RECOMPUTE = ("false", "off", "none", "disabled", "no", "true", "on", "full", "enabled", "yes", "selective")


def faults(config: Config) -> Iterator[Fault]:
    """Keys and words that the sections' objects refuse."""
    for section, keys in _KEYS.items():
        yield from _unknown(config, section, keys)
    if config.text("optimizer", "_target_").endswith(("optim.AdamW", "optim.Adam")):
        keys = (*_ADAMW, *("differentiable", "fused", "param_group_overrides", "_target_"))
        yield from _unknown(config, "optimizer", keys)
    for path, kind in _CHOICES.items():
        value = config.get(*path)
        if value is not None and (not isinstance(value, str) or value not in kind.split("|")):
            yield misfit(path, value, kind)
    yield from _strategy(config)
    yield from _recipe(config)
    yield from _optimizer(config)


def _unknown(config: Config, section: str, keys: Iterable[str]) -> Iterator[Fault]:
    names = dict.fromkeys(keys)
    for key in config.table(section):
        if str(key) not in names:
            yield unknown((section, str(key)), names)


def _strategy(config: Config) -> Iterator[Fault]:
    name = (config.text("distributed", "strategy") or "fsdp2").lower()
    path = ("distributed", "strategy")
    if name not in _STRATEGIES:
        if name not in _MEGATRON:
            yield misfit(path, config.get(*path), "|".join((*_STRATEGIES, *_MEGATRON)))
        return
    yield from _unknown(config, "distributed", (*_OF_ANY, *_STRATEGIES[name]))
    for key in _SIZES[2:] if name == "ddp" else ():
        size = config.number("distributed", key, default=1)
        if size > 1:
            message = f"ddp copies the whole model, so {key} {size} cannot be"
            yield Fault(
                code="trainer-conflict", message=message, path=("distributed", key), hint="strategy: fsdp2"
            )
    size = config.number("distributed", "pp_size", default=1)
    if size > 1 and config.get("distributed", "pipeline") is None:
        message = f"pp_size {size} needs a section pipeline: its schedule and its rows a pass"
        yield Fault(
            code="trainer-missing",
            message=message,
            path=("distributed", "pp_size"),
            hint="pipeline: {pp_schedule: 1f1b, pp_microbatch_size: 1}",
        )
    recompute = config.get("distributed", "activation_checkpointing")
    if not isinstance(recompute, (bool, type(None))) and str(recompute).lower() not in _RECOMPUTE:
        yield misfit(("distributed", "activation_checkpointing"), recompute, "full|selective|false")


def _recipe(config: Config) -> Iterator[Fault]:
    path = ("recipe", "_target_") if config.table("recipe") else ("recipe",)
    name = config.text(*path)
    if name and "." not in name and name not in RECIPES:
        fault = misfit(path, name, "|".join(RECIPES))
        yield attrs.evolve(fault, message=f"there is no recipe {name}")


def _optimizer(config: Config) -> Iterator[Fault]:
    section: Any = config.get("optimizer")
    if section is None:
        return
    path = ("optimizer", "_target_")
    target = config.text(*path)
    module, _, name = target.rpartition(".")
    if not target:
        hint = "_target_: torch.optim.AdamW"
        yield Fault(
            code="trainer-missing", message="optimizer has no _target_", path=("optimizer",), hint=hint
        )
    elif module.startswith("torch") and (module != "torch.optim" or name not in _OPTIMIZERS):
        fault = misfit(path, name, "|".join(_OPTIMIZERS))
        hint = f"_target_: torch.optim.{fault.hint.rpartition(' ')[2] or 'AdamW'}"
        yield attrs.evolve(fault, message=f"torch has no optimizer {target}", hint=hint)
