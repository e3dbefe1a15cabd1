"""What NeoX imports and compiles when it starts, by the names of the packages that bring it.

The job's own look at the checkout, `hpctrain_job.closure`, is right for every revision; but it needs the
environment, hours after a package was forgotten. This table needs no more than the lock.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpctrain.plugin import Plan, Problem, RunSpec
from hpctrain_plugins.environments.wheels.packages_spec import normal
from hpctrain_plugins.trainers.external.config import Config
from hpctrain_plugins.trainers.neox.checks import attention

PACKAGES = {
    "deepspeed": "deepspeed",
    "numpy": "numpy",
    "packaging": "packaging",
    "requests": "requests",
    "sentencepiece": "sentencepiece",
    "tokenizers": "tokenizers",
    "torch": "torch",
    "transformers": "transformers",
    "yaml": "pyyaml",
}
"""Package by module: what `train.py` imports, of EleutherAI's ea7aefd8 and Geodesic's c43cf196.
EleutherAI's takes `packaging` from pkg_resources: see the rule neox-pkg-resources."""
FUSIONS = ("scaled_upper_triang_masked_softmax_fusion", "scaled_masked_softmax_fusion", "rope_fusion")
"""Keys of which each asks for the fused kernels, and ninja compiles these."""
_REPOSITORIES = ("eleutherai/gpt-neox", "geodesicresearch/geodesic-gpt-neox")
"""Whose imports the table has; another fork may start with fewer."""
_LISTED = ("venv", "uv", "conda")
"""Environments whose lock names every package; an image has packages of its own."""


def imported_later(config: Config) -> dict[str, str]:
    """Package by module: what this configuration makes NeoX import beyond its start."""
    later = {}
    if "flash" in attention(config):
        later["flash_attn"] = "flash-attn"
    if config.get("use_wandb") is True:
        later["wandb"] = "wandb"
    return later


def packages(config: Config) -> tuple[str, ...]:
    """The packages that NeoX cannot train this configuration without."""
    built_with = ("pybind11", "ninja") if kernels(config) else ("pybind11",)
    return (*PACKAGES.values(), *built_with, *imported_later(config).values())


def kernels(config: Config) -> bool:
    """Whether NeoX would load its fused kernels."""
    return any(config.get(key) is True for key in FUSIONS)


def problems(run: RunSpec, plan: Plan, config: Config) -> Iterator[Problem]:
    """A package that nothing brings, as soon as the lock says what there will be."""
    environment = run.environment
    locked = {normal(pin.name) for pin in plan.pins if pin.kind == "pypi"}
    if not locked or environment.use not in _LISTED or getattr(environment.options, "system_site", False):
        return
    named = {normal(package.name) for package in (*environment.packages, *environment.compile)}
    missing = [name for name in packages(config) if name not in locked | named]
    if missing:
        listed = ", ".join(f'"{name}"' for name in missing)
        yield Problem(
            code="neox-packages",
            message=f"NeoX needs {', '.join(missing)}, and the locked environment has no such package",
            where="environment.packages",
            hint=f"packages = [{listed}]      beside yours; stack brings all that NeoX starts with",
            fatal=run.code is None or any(name in run.code.git.lower() for name in _REPOSITORIES),
        )
