"""What differs between the libraries' generations: transformers 4.57 with TRL 0.23, and 5.x with 1.x."""

from __future__ import annotations

import inspect
import json
import os
from pathlib import Path
from typing import Any

from hpctrain_trl.environment import accelerator
from hpctrain_trl.errors import BadConfig

_NEW_CLASS = "TokenizersBackend"
_OLD_CLASS = "PreTrainedTokenizerFast"


def arguments(values: dict[str, Any]) -> Any:
    """An `SFTConfig` from the newer names, with those spelt the older way that this generation needs."""
    from trl import SFTConfig

    parameters = inspect.signature(SFTConfig).parameters
    values = dict(values)
    if "activation_checkpointing" not in parameters:
        values["gradient_checkpointing"] = values.pop("activation_checkpointing")
        if "fsdp" in values:
            _earlier_fsdp()
    if "train_sampling_strategy" not in parameters:
        by_length = values.pop("train_sampling_strategy") == "group_by_length"
        values["group_by_length"] = by_length
    if "warmup_ratio" not in parameters:
        ratio = values.pop("warmup_ratio")
        values["warmup_steps"] = ratio or values["warmup_steps"]
    if isinstance(parameters["include_num_input_tokens_seen"].default, bool):
        values["include_num_input_tokens_seen"] = True
    return SFTConfig(**values)


def _earlier_fsdp() -> None:
    """The earlier generation is told the version of FSDP by the environment, and shares GPUs only."""
    if not accelerator():
        raise BadConfig("fsdp", "FSDP needs a GPU with transformers 4", "zero_stage = 3")
    os.environ.setdefault("FSDP_VERSION", "2")


def joined(plan: Any) -> Any:
    """Let all ranks meet, and answer this one's device.

    Under ZeRO-3 they must have met before the model is made. On a processor the libraries join torch's
    group but not DeepSpeed's own, which would then count one rank.
    """
    device = plan.device
    if plan.deepspeed:
        import deepspeed

        # Started alone, DeepSpeed would look for MPI to learn who it is.
        single_process = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
        for name, value in {**single_process, "MASTER_PORT": "29511"}.items():
            os.environ.setdefault(name, value)
        deepspeed.init_distributed()
    if device.type == "cpu" and device.index is not None:
        _name_processors()
    return device


def _name_processors() -> None:
    """Let torch read what was saved onto `cpu:0`.

    The earlier generation numbers the processor by rank, and torch knows only `cpu`: nothing was resumed.
    """
    import torch

    def stays(storage: Any, where: str) -> Any:
        return storage if where.startswith("cpu:") else None

    torch.serialization.register_package(5, lambda _: None, stays)


def quiet() -> None:
    """No progress bars and no advice in the log; errors stay."""
    import datasets
    import transformers

    datasets.disable_progress_bars()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def readable_by_both(folder: Path) -> None:
    """Rewrite a saved tokenizer in the form that transformers 4 reads as well as 5.

    Version 5 names a class that 4 does not have and writes a list where 4 expects a table.
    """
    path = folder / "tokenizer_config.json"
    if not path.is_file():
        return
    config = json.loads(path.read_text(encoding="utf-8"))
    if config.get("tokenizer_class") == _NEW_CLASS:
        config["tokenizer_class"] = _OLD_CLASS
    if isinstance(config.get("extra_special_tokens"), list):
        config["additional_special_tokens"] = config.pop("extra_special_tokens")
    config.pop("backend", None)
    path.write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
