"""What transformers computes from a folder, where it is installed: a way that shares nothing with ours."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from hpctrain_plugins.checkpoints.copying.casts import Array
from hpctrain_plugins.checkpoints.tensors import Model

LIMIT = 1e-5
"""How far it may differ from flows in float64, of the largest logit: its rotary angles are fp32."""


@attrs.frozen
class Opinion:
    """The logits and by which version, or why there are none."""

    logits: Array | None = None
    by: str = ""
    reason: str = ""


def ask(folder: Path, model: Model, tokens: Sequence[int]) -> Opinion:
    """Let transformers compute; no code of the model's own is run, and no pickle is read."""
    if not all(map(find_spec, ("torch", "transformers"))):
        return Opinion(reason="transformers is not installed here")
    if model.config.get("auto_map"):
        return Opinion(reason="the model brings code of its own, which is not run")
    size = 8 * sum(tensor.numel for tensor in model.tensors.values())
    if size > _free_memory() // 2:
        return Opinion(reason=f"in float64 it needs {size / 1e9:.0f} GB, more than half of the free memory")
    try:
        return _computed(folder, tokens)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        text = (str(error).splitlines() or [""])[0][:200]
        return Opinion(reason=f"transformers does not load it ({type(error).__name__}: {text})")


def _computed(folder: Path, tokens: Sequence[int]) -> Opinion:
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    transformers.utils.logging.disable_progress_bar()
    model = transformers.AutoModelForCausalLM.from_pretrained(
        str(folder),
        local_files_only=True,
        use_safetensors=True,
        trust_remote_code=False,
        attn_implementation="eager",
    )
    with torch.no_grad():
        logits = model.double().eval()(torch.tensor([list(tokens)])).logits[0]
    return Opinion(np.asarray(logits.numpy(), np.float64), f"transformers {transformers.__version__}")


def _free_memory() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
