"""What nanotron refuses at its start, or does without a word, known before the queue."""

from __future__ import annotations

from collections.abc import Iterator

from hpctrain_plugins.trainers.external.config import Config, Fault, Machine
from hpctrain_plugins.trainers.external.kinds import trap_faults
from hpctrain_plugins.trainers.nanotron import schema

BEFORE_LOCAL_RANK = (
    "5f8a52b08b702e206f31f2660e4b6f22ac328c95",
    "b4376670127e3f6c6d774140c74211c3334ce87b",
)
"""Revisions before 84eabd66 (2025-03-22); the tags v0.1 to v0.5 are older too."""


def faults(config: Config, machine: Machine, revisions: frozenset[str] = frozenset()) -> Iterator[Fault]:
    """Everything at once; `revisions` are names of the checkout's revision."""
    yield from schema.faults(config)
    yield from trap_faults(config, schema.kinds(config))
    yield from _newer(config, revisions)
    yield from _world(config, machine)
    yield from _local_rank(machine, revisions)
    yield from _heads(config)
    yield from _layers(config)
    yield from _stages(config)
    yield from _steps(config)


def padded_vocabulary(config: Config) -> tuple[int, int]:
    """The vocabulary as it is and as nanotron trains it: a multiple that every tensor rank can share."""
    size = config.number("model", "model_config", "vocab_size")
    multiple = config.number("model", "make_vocab_size_divisible_by", default=1) * tensor_parallel(config)
    return size, -(-size // multiple) * multiple if multiple > 0 else size


def tensor_parallel(config: Config) -> int:
    """tp, at least 1."""
    return max(1, config.number("parallelism", "tp", default=1))


def copies(config: Config) -> int:
    """How many copies of the model train: dp."""
    return max(1, config.number("parallelism", "dp", default=1))


def is_older(revisions: frozenset[str]) -> bool | None:
    """Whether the checkout is older than the local-rank assertion; None where nobody can know."""
    if any(r.startswith("v0.") or _among(r, BEFORE_LOCAL_RANK) for r in revisions):
        return True
    newest = ("main", "HEAD", "84eabd660f1d57f4e40d1f650dd66519bed90d38")
    return False if not revisions or revisions & set(newest) else None


def _among(revision: str, commits: tuple[str, ...]) -> bool:
    return len(revision) >= 7 and any(commit.startswith(revision) for commit in commits)


def _newer(config: Config, revisions: frozenset[str]) -> Iterator[Fault]:
    if not any(_among(r, BEFORE_LOCAL_RANK[:1]) for r in revisions):
        return
    for path in schema.kinds(config):
        table = config.table(*path[:-1]) if path[:-1] else config.data
        if path[-1] in schema.NEWER and path[-1] in table:
            message = f"the revision 5f8a52b0 does not know {path[-1]} and refuses it"
            yield Fault(code="trainer-key", message=message, path=path)


def _world(config: Config, machine: Machine) -> Iterator[Fault]:
    sizes = {
        name: config.number("parallelism", name, default=1)
        for name in ("dp", "pp", "tp", "context_parallel_size")
    }
    product = 1
    for size in sizes.values():
        product *= size
    if product == machine.gpus:
        return
    terms = " x ".join(
        f"{name} {size}" for name, size in sizes.items() if size != 1 or name != "context_parallel_size"
    )
    ranks_per_copy = product // sizes["dp"] if sizes["dp"] else 0
    fits = ranks_per_copy and machine.gpus % ranks_per_copy == 0
    yield Fault(
        code="trainer-world",
        message=f"{terms} needs {product} GPUs, the run has {machine.gpus}",
        path=("parallelism", "dp"),
        hint=f"dp: {machine.gpus // ranks_per_copy}" if fits else "",
    )


def _local_rank(machine: Machine, revisions: frozenset[str]) -> Iterator[Fault]:
    older = is_older(revisions)
    if machine.nodes <= 1 or machine.gpus > 8 or older:
        return
    tag = BEFORE_LOCAL_RANK[0]
    yield Fault(
        code="nanotron-local-rank",
        message=f"nanotron stops at {machine.nodes} nodes with {machine.gpus} GPUs: Local rank mismatch",
        path=("parallelism",),
        hint=f'[code]\nrev = "{tag}"      or one node, or more than 8 GPUs',
        notes=("since 84eabd66 (2025-03-22) it takes all ranks for local ones where they are 8 or fewer",),
        fatal=older is False,
    )


def _heads(config: Config) -> Iterator[Fault]:
    path = ("model", "model_config")
    tp, heads = tensor_parallel(config), config.number(*path, "num_attention_heads")
    kv = config.number(*path, "num_key_value_heads", default=heads)
    if not heads:
        return
    at = (*path, "num_attention_heads")
    if heads % tp:
        message = f"num_attention_heads {heads} cannot be shared by {tp} tensor ranks"
        yield Fault(code="trainer-shape", message=message, path=at)
    if kv < tp:
        message = f"num_key_value_heads {kv} is less than the {tp} tensor ranks"
        yield Fault(code="trainer-shape", message=message, path=(*path, "num_key_value_heads"))
    if kv > 0 and heads % kv:
        message = f"num_attention_heads {heads} is not a multiple of num_key_value_heads {kv}"
        yield Fault(code="trainer-shape", message=message, path=at)
    hidden = config.number(*path, "hidden_size")
    if hidden % heads:
        message = f"hidden_size {hidden} cannot be divided among {heads} heads"
        yield Fault(code="trainer-shape", message=message, path=(*path, "hidden_size"))


def _layers(config: Config) -> Iterator[Fault]:
    path = ("model", "model_config")
    pp, layers = config.number("parallelism", "pp", default=1), config.number(*path, "num_hidden_layers")
    if layers and pp > layers:
        message = f"{pp} pipeline stages for {layers} layers: some would have none"
        yield Fault(code="trainer-shape", message=message, path=("parallelism", "pp"))
    elif layers and pp > 1 and layers % pp:
        message = f"{layers} layers in {pp} pipeline stages are not equal: the slowest sets the pace"
        yield Fault(code="trainer-shape", message=message, path=("parallelism", "pp"), fatal=False)
    tp, length = tensor_parallel(config), config.number("tokens", "sequence_length")
    if config.text("parallelism", "tp_mode").lower() == "reduce_scatter" and length % tp:
        message = f"sequence_length {length} cannot be shared by {tp} tensor ranks, as reduce_scatter does"
        yield Fault(code="trainer-shape", message=message, path=("tokens", "sequence_length"))
    longest = config.number(*path, "max_position_embeddings")
    if length and longest and length != longest:
        message = f"sequence_length {length} replaces max_position_embeddings {longest} without a word"
        yield Fault(code="trainer-shape", message=message, path=("tokens", "sequence_length"), fatal=False)


def _stages(config: Config) -> Iterator[Fault]:
    stages = config.get("data_stages")
    if not isinstance(stages, list):
        return
    names = [config.get("data_stages", n, "name") for n in range(len(stages))]
    starts = [config.get("data_stages", n, "start_training_step") for n in range(len(stages))]
    if 1 not in starts:
        where = ("data_stages", 0, "start_training_step") if stages else ("data_stages",)
        hint = "start_training_step: 1"
        yield Fault(code="trainer-steps", message="no data stage starts at step 1", path=where, hint=hint)
    for number in range(1, len(stages)):
        for key, values in (("name", names), ("start_training_step", starts)):
            if values[number] in values[:number]:
                message = f"two data stages have the {key} {values[number]}"
                yield Fault(code="trainer-steps", message=message, path=("data_stages", number, key))


def _steps(config: Config) -> Iterator[Fault]:
    steps = config.number("tokens", "train_steps")
    path = ("optimizer", "learning_rate_scheduler")
    warmup = config.number(*path, "lr_warmup_steps")
    if steps and warmup >= steps:
        message = f"lr_warmup_steps {warmup} of {steps} train_steps: the rate never falls"
        yield Fault(code="trainer-steps", message=message, path=(*path, "lr_warmup_steps"))
    interval = config.number("checkpoints", "checkpoint_interval")
    if steps and interval > steps:
        message = f"checkpoint_interval {interval} is more than {steps} train_steps: only the end is saved"
        yield Fault(
            code="trainer-steps", message=message, path=("checkpoints", "checkpoint_interval"), fatal=False
        )
