"""Which AdamW takes the steps: DeepSpeed's fused one where its operator was compiled with DeepSpeed.

Elsewhere it would be compiled when training starts, by every rank at once; torch's is taken then.
"""

from __future__ import annotations

from typing import Any

from hpctrain_trl.settings import Settings


def compiled(settings: Settings, plan: Any) -> tuple[type, dict[str, Any]] | None:
    """The class and its arguments; None for the trainer's own choice.

    Weight decay stays the trainer's: it leaves out norms and biases, as DeepSpeed's configuration cannot.
    """
    if not settings.zero_stage or settings.deepspeed:
        return None
    from deepspeed.git_version_info import installed_ops

    if not installed_ops.get("fused_adam"):
        return None
    from deepspeed.ops.adam import FusedAdam

    betas = (plan.adam_beta1, plan.adam_beta2)
    return FusedAdam, {"lr": plan.learning_rate, "betas": betas, "eps": plan.adam_epsilon}


def name(optimizer: Any) -> str:
    """The innermost optimizer by its class: what wraps it shares weights or scales losses."""
    while hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    kind = type(optimizer)
    return f"{kind.__module__}.{kind.__qualname__}"
