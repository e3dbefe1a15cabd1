"""Whether an optimizer can be written as it was asked for: `--ranks N`, `--to deepspeed-universal`."""

from __future__ import annotations

from hpctrain.plugin import ConfigError
from hpctrain_plugins.checkpoints.options import ConvertOptions

FORMATS = RANKS, UNIVERSAL = "deepspeed-zero", "deepspeed-universal"
"""The two forms of a ZeRO checkpoint: cut for so many ranks, and by parameter."""

_RESHARDED_AT_LOAD = ("dcp", "hf-sharded")


def check(source_format: str, target_format: str, options: ConvertOptions) -> None:
    """Refuse what needs no other ranks, or holds no optimizer that could be written."""
    where = "--to" if options.ranks is None else "--ranks"
    if source_format in _RESHARDED_AT_LOAD:
        message = "torch's distributed checkpoints are cut for the ranks that load them, when they load them"
        raise ConfigError.of("usage", message, where=where, hint="resume from it as it is")
    if source_format not in FORMATS:
        wish = f"{target_format} is" if options.ranks is None else "--ranks is"
        message = f"{source_format} has no optimizer of ranks; {wish} for checkpoints of DeepSpeed's ZeRO"
        hint = "--to hf" if options.ranks is None else "leave --ranks out"
        raise ConfigError.of("usage", message, where=where, hint=hint)
    if target_format not in FORMATS:
        message = "--ranks writes a checkpoint of ZeRO, with its optimizer"
        raise ConfigError.of("usage", message, where="--ranks", hint="leave --ranks or --to out")
    if options.dtype != "keep":
        message = f"{target_format} holds the optimizer's numbers in their own types"
        raise ConfigError.of("usage", message, where="--dtype", hint="leave --dtype out")
    if target_format == RANKS and options.ranks is None:
        message = "a checkpoint of ZeRO is written for so many ranks"
        raise ConfigError.of("usage", message, where="--to", hint=f"--ranks N, or --to {UNIVERSAL}")
    if target_format == UNIVERSAL and options.ranks is not None:
        message = "a universal checkpoint is cut for the ranks that load it, when they load it"
        raise ConfigError.of("usage", message, where="--ranks", hint="leave --ranks out")
