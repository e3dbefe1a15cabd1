"""The keys of a nanotron configuration with their types, as `src/nanotron/config` states them.

Read at 2411b022 (2026-04-07). A `!` before a kind: the key must be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hpctrain_plugins.trainers.external.config import Config, Fault
from hpctrain_plugins.trainers.external.kinds import fits, misfit, unknown
from hpctrain_plugins.trainers.yaml_file import Path

Table = Mapping[str, str]

_LEVELS = "debug|info|warning|error|critical|passive?"
_ATTENTION = "flash_attention_2|flex_attention|sdpa|ring_flash_triton|ring|llama3_ring_attention?"
_PRETRAIN = {
    "hf_dataset_or_datasets": "!any",
    "hf_dataset_splits": "any",
    "hf_dataset_config_name": "text?",
    "dataset_processing_num_proc_per_process": "int?",
    "dataset_overwrite_cache": "truth?",
    "text_column_name": "text?",
}
_NANOSET = {
    "dataset_folder": "!any",
    "dataset_weights": "list?",
    "dataset_read_path": "any",
    "tokenizer_name": "text?",
    "vocab_size": "int?",
    "token_size_in_bytes": "int?",
    "return_positions": "truth?",
    "skip_in_stream": "truth?",
    "pad_samples_to_global_batch_size": "truth?",
    "dataset_max_tokens": "list?",
    "shuffle_files": "truth?",
    "use_old_brrr_dataloader": "truth?",
}
_SFT = {"sft_dataloader": "truth?", "debug_max_samples": "int?"}
_LLAMA = {
    **dict.fromkeys(
        ("bos_token_id", "eos_token_id", "hidden_size", "intermediate_size", "max_position_embeddings"), "int"
    ),
    **dict.fromkeys(("num_attention_heads", "num_hidden_layers", "pretraining_tp", "vocab_size"), "int"),
    **dict.fromkeys(("num_key_value_heads", "pad_token_id"), "int?"),
    **dict.fromkeys(("initializer_range", "rms_norm_eps", "rope_theta", "z_loss_coefficient"), "float"),
    **dict.fromkeys(("attention_bias", "rope_interleaved", "tie_word_embeddings", "use_cache"), "truth"),
    **dict.fromkeys(("is_llama_config", "z_loss_enabled"), "truth"),
    "hidden_act": "text",
    "rope_scaling": "table?",
    "_attn_implementation": _ATTENTION,
}
TABLES: Mapping[str, Table] = {
    "general": {
        "project": "!text",
        "run": "text?",
        **dict.fromkeys(("seed", "step", "consumed_train_samples"), "int?"),
        "benchmark_csv_path": "text?",
        "ignore_sanity_checks": "truth",
    },
    "parallelism": {
        **dict.fromkeys(("dp", "pp", "tp"), "!int"),
        "pp_engine": "1f1b|afab?",
        "tp_mode": "all_reduce|reduce_scatter|ALL_REDUCE|REDUCE_SCATTER?",
        "tp_linear_async_communication": "truth?",
        "recompute_layer": "truth",
        "tp_recompute_allgather": "truth",
        "expert_parallel_size": "int",
        "context_parallel_size": "int",
    },
    "model": {
        "model_config": "!table",
        "init_method": "!table",
        "dtype": "float32|float64|complex64|complex128|float16|bfloat16|uint8|int8|int16|int32|int64|bool?",
        "make_vocab_size_divisible_by": "int",
        "ddp_bucket_cap_mb": "int",
    },
    "tokenizer": {
        "tokenizer_name_or_path": "text?",
        "tokenizer_revision": "text?",
        "tokenizer_max_length": "int?",
    },
    "checkpoints": {
        "checkpoints_path": "!text",
        "checkpoint_interval": "!int",
        "resume_checkpoint_path": "text?",
        **dict.fromkeys(("save_initial_state", "save_final_state", "load_lr_scheduler"), "truth?"),
        **dict.fromkeys(("load_optimizer", "checkpoints_path_is_shared_file_system"), "truth?"),
    },
    "logging": {
        "log_level": _LEVELS,
        "log_level_replica": _LEVELS,
        "iteration_step_info_interval": "int?",
    },
    "metrics_logging": {"log_level": "int", "log_detail_interval": "int"},
    "tokens": {
        **dict.fromkeys(("sequence_length", "train_steps", "micro_batch_size"), "!int"),
        "batch_accumulation_per_replica": "!int",
        **dict.fromkeys(("val_check_interval", "limit_val_batches", "limit_test_batches"), "int?"),
    },
    "optimizer": {
        "optimizer_factory": "!table",
        "zero_stage": "!int",
        "weight_decay": "!float",
        "clip_grad": "float?",
        "accumulate_grad_in_fp32": "!truth",
        "learning_rate_scheduler": "!table",
        "weight_decay_exclude_named_params": "list?",
    },
    "optimizer.learning_rate_scheduler": {
        "learning_rate": "!float",
        "lr_warmup_steps": "int",
        "lr_warmup_style": "!linear|constant",
        "lr_decay_style": "linear|cosine|1-sqrt",
        "lr_decay_steps": "int?",
        "lr_decay_starting_step": "int?",
        "min_decay_lr": "float",
    },
    "profiler": {
        "profiler_export_path": "text?",
        **dict.fromkeys(("wait", "warmup", "active", "repeat", "skip_first"), "int"),
        **dict.fromkeys(("record_shapes", "profile_memory", "with_stack", "export_chrome_trace"), "truth"),
    },
}
"""Tables by their dotted path."""

TOP = {
    **dict.fromkeys(("general", "parallelism", "model"), "!table"),
    **dict.fromkeys(("tokenizer", "checkpoints", "logging", "metrics_logging", "tokens"), "table?"),
    **dict.fromkeys(("optimizer", "profiler", "lighteval", "s3_upload"), "table?"),
    "data_stages": "list?",
}
STAGE = {"name": "!text", "start_training_step": "!int", "data": "!table", "sequence_length": "int?"}
DATA = {"dataset": "any", "seed": "int?", "num_loading_workers": "int?"}
ADAM = {
    "name": "text",
    **dict.fromkeys(("adam_eps", "adam_beta1", "adam_beta2"), "!float"),
    "torch_adam_is_fused": "!truth",
}
NEWER = frozenset({"save_final_state", "load_lr_scheduler", "load_optimizer", "metrics_logging"})
"""Keys that the revision of the Alps tutorial (5f8a52b0) does not have yet."""


def tables(config: Config) -> Iterator[tuple[Path, Table]]:
    """Every table of the configuration with the keys that it may hold."""
    yield (), TOP
    for name, keys in TABLES.items():
        path = tuple(name.split("."))
        if isinstance(config.get(*path), dict):
            yield path, keys
    if config.table("model", "model_config").get("is_llama_config"):
        yield ("model", "model_config"), _LLAMA
    factory = ("optimizer", "optimizer_factory")
    if config.text(*factory, "name").lower() == "adamw":
        yield factory, ADAM
    stages = config.get("data_stages")
    for number, stage in enumerate(stages if isinstance(stages, list) else ()):
        if isinstance(stage, dict):
            yield from _stage(config, ("data_stages", number))


def _stage(config: Config, path: Path) -> Iterator[tuple[Path, Table]]:
    yield path, STAGE
    if config.table(*path, "data"):
        yield (*path, "data"), DATA
    dataset = config.table(*path, "data", "dataset")
    if dataset:
        keys = _NANOSET if "dataset_folder" in dataset else {**_PRETRAIN, **_SFT}
        yield (*path, "data", "dataset"), keys


def kinds(config: Config) -> dict[Path, str]:
    """The kind of every key that may be there, by path."""
    return {(*path, key): kind.lstrip("!") for path, keys in tables(config) for key, kind in keys.items()}


def faults(config: Config) -> Iterator[Fault]:
    """Missing, unknown and wrong keys: loading is strict."""
    trapped = {path for path, _ in config.traps()}
    for path, keys in tables(config):
        table = config.table(*path) if path else config.data
        for key, kind in keys.items():
            if kind.startswith("!") and key not in table:
                yield Fault(code="trainer-missing", message=f"{key} is missing", path=(*path, key))
        for key, value in table.items():
            at = (*path, key)
            if key not in keys:
                yield unknown(at, keys)
            elif not fits(value, keys[key].lstrip("!")) and at not in trapped:
                yield misfit(at, value, keys[key].lstrip("!"))
    yield from _init_method(config)


def _init_method(config: Config) -> Iterator[Fault]:
    path = ("model", "init_method")
    table = config.table(*path)
    if table and not {"std", "use_mup", "path"} & set(table):
        yield Fault(
            code="trainer-missing",
            message="init_method says neither std, use_mup nor path",
            path=path,
            hint="init_method: {std: 0.025}",
        )
