"""Size and effort of a run, from the shape of its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import frozen

from hpctrain.plugin import Cluster, Numbers, RunSpec
from hpctrain_plugins.trainers import ranks

if TYPE_CHECKING:
    from hpctrain_job.arithmetic.model_shape import Shape  # most plans know no shape

_GB = 1e9
_ADAM = 8
"""Bytes of AdamW's two moments for one trained weight."""
_LEFT_OUT = "memory: what the runtime itself takes"
_ACTIVATIONS = "memory: activations and what the runtime itself takes"


@frozen
class Ranks:
    """How many train, and how many of them on one node."""

    world: int
    node: int

    @classmethod
    def of(cls, run: RunSpec, cluster: Cluster, world: int) -> Ranks:
        """Those of a run, of which `world` train."""
        nodes = run.resources.nodes or -(-world // max(1, ranks.gpus_per_node(run, cluster)))
        return cls(world=world, node=max(1, world // max(1, nodes)))


def numbers(options: Any, ranks: Ranks, config: Mapping[str, Any] | None = None) -> Numbers:
    """What is known before the job; what is not stays None and is named."""
    rows = options.per_device_train_batch_size * options.gradient_accumulation_steps * ranks.world
    left_out = ["padding: rows shorter than max_length count as full"]
    if not options.max_steps:
        left_out.append("steps: they follow from the number of rows")
    shape = _shape(config)
    tokens = rows * options.max_length
    steps = options.max_steps or None
    if shape is None:
        left_out.append(_no_size(config))
        return Numbers(rows_per_step=rows, tokens_per_step=tokens, steps=steps, leaves_out=tuple(left_out))
    from hpctrain_job.arithmetic.model_shape import hardware  # most plans know no shape

    lora = options.method == "lora"
    trained = _adapters(options, shape) if lora else shape.parameters
    memory = _Memory(options, shape.parameters, trained, ranks) if trained else None
    activations = memory.activations_gb(options, shape) if memory and not lora else None
    return Numbers(
        parameters=shape.parameters,
        trained=trained,
        active=shape.of_experts,
        rows_per_step=rows,
        tokens_per_step=tokens,
        steps=steps,
        flops_per_token=shape.flops_per_token(options.max_length, frozen=lora),
        flops_causal=shape.flops_per_token(options.max_length, causal=True, frozen=lora),
        hardware=hardware(frozen=lora) if options.activation_checkpointing else 1.0,
        memory_gb=memory.gpu_gb if memory else None,
        activations_gb=activations,
        loading_gb=memory.loading_gb if memory else None,
        saving_gb=memory.saving_gb if memory else None,
        checkpoint_gb=memory.checkpoint_gb if memory else None,
        leaves_out=(*left_out, _ACTIVATIONS if activations is None else _LEFT_OUT),
    )


def _shape(config: Mapping[str, Any] | None) -> Shape | None:
    """The model's shape where its `config.json` can be read; only then its arithmetic is loaded."""
    if not config:
        return None
    from hpctrain_job.arithmetic.model_shape import Shape  # most plans know no shape

    return Shape.of(config)


def _no_size(config: Mapping[str, Any] | None) -> str:
    if config:
        return f"size: models of the type {config.get('model_type', '?')} are not counted here"
    return "size: the model's config.json cannot be read from here (hpctrain lock reads that of the hub)"


def _adapters(options: Any, shape: Shape) -> int | None:
    """Adapter weights on every linear layer, or on those named; None where a word is no layer's last name."""
    chosen = options.lora_target_modules
    if chosen == ("all-linear",):
        return shape.adapters(options.lora_r)
    if not all(shape.adapters(1, word.__eq__) for word in chosen):
        return None
    return shape.adapters(options.lora_r, chosen.__contains__)


class _Memory:
    """What weights, gradients and AdamW's moments take, on a GPU, on a node and on the disk."""

    def __init__(self, options: Any, parameters: int, trained: int, ranks: Ranks) -> None:
        half = options.dtype == "bfloat16" or (options.dtype == "auto" and options.method == "lora")
        self.mixed = not half
        self.weights = parameters * (2 if half else 4)
        self.adapters = trained * 4 if options.method == "lora" else 0
        self.trained, self.ranks = trained, ranks
        self.stage = 3 if options.fsdp else options.zero_stage
        self.sharded = options.fsdp

    @property
    def gpu_gb(self) -> float:
        """On one GPU; ZeRO divides them by stage, FSDP all."""
        weights, moments, gradients = self.weights + self.adapters, self.trained * _ADAM, self.trained * 4
        if self.stage >= 1:
            moments //= self.ranks.world
        if self.stage >= 2:
            gradients //= self.ranks.world
        if self.stage == 3:
            weights //= self.ranks.world
        return round((weights + moments + gradients) / _GB, 3)

    def activations_gb(self, options: Any, shape: Shape) -> float | None:
        """Of the rows that a GPU takes at once; not an adapter's, to which dropout adds."""
        recomputed = options.activation_checkpointing
        of_token = shape.backward_bytes(mixed=self.mixed, recomputed=recomputed)
        if of_token is None:
            return None
        # autocast keeps the matrices' copies in bfloat16, unless ZeRO or FSDP hold them otherwise
        matrices = shape.hidden * shape.vocab if recomputed else shape.active
        copies = matrices * 2 if self.mixed and not self.stage else 0
        tokens: int = options.per_device_train_batch_size * options.max_length
        return round((tokens * of_token + copies) / _GB, 3)

    @property
    def loading_gb(self) -> float:
        """Every rank reads the whole model; with stage 3 of ZeRO only its part."""
        copies = self.ranks.node if self.stage < 3 or self.sharded else self.ranks.node / self.ranks.world
        return round(self.weights * copies / _GB, 3)

    @property
    def saving_gb(self) -> float:
        """The first rank writes the model from memory, gathered first; with FSDP each rank its part."""
        if self.sharded:
            share = self.ranks.node / self.ranks.world
            return round((self.weights + self.trained * _ADAM) * share / _GB, 3)
        return round((self.adapters or self.weights) / _GB, 3)

    @property
    def checkpoint_gb(self) -> float:
        """What is trained, with its moments."""
        return round(((self.adapters or self.weights) + self.trained * _ADAM) / _GB, 3)
