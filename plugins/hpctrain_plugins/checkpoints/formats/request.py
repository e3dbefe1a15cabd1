"""Whether an optimizer can be written as it was asked for.

By `--ranks N`, `--to deepspeed-universal` or `--optimizer`.
"""

from __future__ import annotations

from hpctrain.plugin import ConfigError
from hpctrain_plugins.checkpoints.options import ConvertOptions

FORMATS = RANKS, UNIVERSAL = "deepspeed-zero", "deepspeed-universal"
"""The two forms of a ZeRO checkpoint: cut for so many ranks, and by parameter."""

MEGATRON = "megatron"
"""What keeps its form, and writes an optimizer of the older layout by the names of weights."""

_RESHARDED_AT_LOAD = ("dcp", "hf-sharded")


def check(source_format: str, target_format: str, options: ConvertOptions) -> None:
    """Refuse what needs no other ranks, or holds no optimizer that could be written."""
    if target_format not in FORMATS and options.ranks is None:
        _check_named(source_format, target_format, options)
        return
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


def _check_named(source_format: str, target_format: str, options: ConvertOptions) -> None:
    """`--optimizer`: from Megatron-Core's format to itself, with nothing else changed."""
    if source_format in FORMATS:
        message, hint = f"{target_format} takes no optimizer of ZeRO", f"--ranks N, or --to {UNIVERSAL}"
        raise ConfigError.of("usage", message, where="--optimizer", hint=hint)
    if source_format != MEGATRON:
        message = f"the optimizer of {source_format} is not rewritten"
        raise ConfigError.of("usage", message, where="--optimizer", hint="leave --optimizer out")
    if target_format != MEGATRON:
        message = f"{target_format} takes no optimizer of Megatron-Core"
        raise ConfigError.of("usage", message, where="--optimizer", hint=f"--to {MEGATRON}")
    default = ConvertOptions()
    for name in ("dtype", "tp", "iteration", "layer_keys", "masters", "config"):
        if getattr(options, name) != getattr(default, name):
            flag = "--" + name.replace("_", "-")
            message = f"--optimizer keeps everything as it was, and {flag} would change it"
            raise ConfigError.of("usage", message, where=flag, hint=f"leave {flag} out")
