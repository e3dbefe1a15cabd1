"""Where the model lies that an adapter was trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpctrain.plugin import ConfigError
from hpctrain_plugins.checkpoints import links
from hpctrain_plugins.checkpoints.formats import hf
from hpctrain_plugins.checkpoints.formats.hf import check as hf_check
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.tensors import Model


def find_base(folder: Path, config: dict[str, Any], options: ConvertOptions) -> Model:
    """The base that the options name, or the adapter's own word when it is a folder here."""
    named = str(config.get("base_model_name_or_path") or "")
    choices = [options.base] if options.base else [Path(named), folder / named] if named else []
    for path in choices:
        if path.is_dir() and hf.detect(path):
            links.check(path)
            base = hf.read(path, ConvertOptions(tokenizer=options.tokenizer))
            hf_check.check(base, path)
            base.decisions["base"] = str(path)
            return base
    message = f"the base model {str(options.base or named)!r} is not a folder with weights"
    raise ConfigError.of("checkpoint-base", message, where="base", hint="--base DIR")
