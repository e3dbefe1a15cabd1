"""megatron-core on CPU ranks: its GPT model with numbers that follow from the keys it saves them under.

What is replaced asks for a GPU and touches neither names, shapes nor files. Ranks are forked and meet in
a file.
"""

# mypy: ignore-errors
# It runs in the environment with megatron-core, which the type checker does not see.

import argparse
import contextlib
import multiprocessing
import os
import warnings
import zlib
from pathlib import Path

warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402

torch.compile = lambda function=None, **options: function or (lambda later: later)  # for a few kilobytes
from megatron.core import dist_checkpointing, parallel_state, tensor_parallel  # noqa: E402
from megatron.core.activations import squared_relu  # noqa: E402
from megatron.core.dist_checkpointing.mapping import ShardedTensor, ShardedTensorFactory  # noqa: E402
from megatron.core.models.gpt import GPTModel  # noqa: E402
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec  # noqa: E402
from megatron.core.transformer import TransformerConfig  # noqa: E402
from megatron.core.transformer.moe import moe_utils  # noqa: E402

STEP = 7
SIZES = ("tp", "pp", "ep")


class Idle:
    """A stream or an event of a GPU that is not there."""

    def __init__(self, *args, **kwargs):
        pass

    def __getattr__(self, name):
        return lambda *args, **kwargs: self


class Tracker:
    @contextlib.contextmanager
    def fork(self, *args, **kwargs):
        yield

    def is_initialized(self):
        return False

    def get_states(self):
        return {}


cuda = torch.cuda
cuda.current_device = lambda: "cpu"
cuda.Stream = cuda.Event = Idle
cuda.synchronize = cuda.empty_cache = cuda.set_device = lambda *args, **kwargs: None
cuda.current_stream = lambda *args: Idle()
torch.Tensor.cuda = lambda self, *args, **kwargs: self
plain_type = torch.Tensor.type
torch.Tensor.type = lambda self, *args, **kwargs: (
    plain_type(self, *args, **kwargs) if args or kwargs else plain_type(self).replace("torch.", "torch.cuda.")
)

moe_utils.te_general_gemm = None  # which 0.16.1 names and does not define without TransformerEngine
tracker = Tracker()
for module in (tensor_parallel, tensor_parallel.random, tensor_parallel.layers):
    module.get_cuda_rng_tracker = lambda *args, **kwargs: tracker


def start(rank, world, meet, tp=1, pp=1, ep=1):
    """Become a rank. Its words go to a file: megatron-core's writers may outlive it and hold a pipe."""
    log = os.open(f"{meet}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": "0"}
    dist.init_process_group("gloo", init_method=f"file://{meet}", rank=rank, world_size=world)
    parallel_state.initialize_model_parallel(tp, pp, expert_model_parallel_size=ep)


def arguments(settings):
    """The fields of Megatron-LM's arguments that say what the model is, with its own defaults."""
    heads = settings["num_attention_heads"]
    settings = {key: value for key, value in settings.items() if key not in SIZES}
    defaults = {
        "num_query_groups": heads,
        "group_query_attention": "num_query_groups" in settings,
        "kv_channels": settings["hidden_size"] // heads,
        "max_position_embeddings": 64,
        "seq_length": 64,
        "position_embedding_type": "rope",
        "rotary_base": 10000,
        "rotary_percent": 1.0,
        "rotary_interleaved": False,
        "use_rope_scaling": False,
        "rope_scaling_factor": 8.0,
        "normalization": "RMSNorm",
        "norm_epsilon": 1e-5,
        "apply_layernorm_1p": False,
        "swiglu": True,
        "squared_relu": False,
        "no_rope_freq": None,
        "add_bias_linear": False,
        "add_qkv_bias": False,
        "qk_layernorm": False,
        "untie_embeddings_and_output_weights": True,
        "make_vocab_size_divisible_by": 128,
        "padded_vocab_size": 128,
        "vocab_size": None,
        "num_experts": None,
        "moe_ffn_hidden_size": None,
        "moe_layer_freq": 1,
        "moe_router_topk": 2,
        "moe_router_pre_softmax": False,
        "multi_latent_attention": False,
        "params_dtype": torch.float32 if settings.get("fp32", False) else torch.bfloat16,
        "numbered": False,
        "iteration": STEP,
        "singleton": False,
        "legacy": False,
    }
    return argparse.Namespace(**{**defaults, **settings})


def built(args, tp=1, pp=1, ep=1):
    """The model that Megatron-LM builds from its arguments, as far as these say how."""
    dtype = torch.float32 if args.params_dtype is torch.float32 else torch.bfloat16
    moe = {}
    if args.num_experts:
        moe = {
            "num_moe_experts": args.num_experts,
            "moe_ffn_hidden_size": args.moe_ffn_hidden_size,
            "moe_router_topk": args.moe_router_topk,
            "moe_router_pre_softmax": args.moe_router_pre_softmax,
            "moe_layer_freq": args.moe_layer_freq,
            "moe_router_load_balancing_type": "none",
            "moe_token_dispatcher_type": "allgather",
            "add_bias_linear": False,
        }
    config = TransformerConfig(
        num_layers=args.num_layers,
        hidden_size=args.hidden_size,
        ffn_hidden_size=args.ffn_hidden_size,
        num_attention_heads=args.num_attention_heads,
        num_query_groups=args.num_query_groups,
        kv_channels=args.kv_channels,
        normalization=args.normalization,
        layernorm_epsilon=args.norm_epsilon,
        gated_linear_unit=args.swiglu,
        activation_func=squared_relu if args.squared_relu else torch.nn.functional.silu,
        no_rope_freq=args.no_rope_freq,
        add_qkv_bias=args.add_qkv_bias,
        qk_layernorm=args.qk_layernorm,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        params_dtype=dtype,
        pipeline_dtype=dtype,
        bf16=dtype is torch.bfloat16,
        use_cpu_initialization=True,
        perform_initialization=False,
        bias_activation_fusion=False,
        bias_dropout_fusion=False,
        masked_softmax_fusion=False,
        gradient_accumulation_fusion=False,
        persist_layer_norm=False,
        apply_rope_fusion=False,
        tensor_model_parallel_size=tp,
        pipeline_model_parallel_size=pp,
        expert_model_parallel_size=ep,
        hetereogenous_dist_checkpoint=args.numbered,
        **({"add_bias_linear": args.add_bias_linear} | moe),
    )
    stage = parallel_state.get_pipeline_model_parallel_rank()
    return GPTModel(
        config=config,
        transformer_layer_spec=get_gpt_decoder_block_spec(config, use_transformer_engine=False),
        vocab_size=args.padded_vocab_size,
        max_sequence_length=args.max_position_embeddings,
        pre_process=stage == 0,
        post_process=stage == pp - 1,
        position_embedding_type="rope",
        rotary_base=args.rotary_base,
        rope_scaling=args.use_rope_scaling,
        rope_scaling_factor=args.rope_scaling_factor,
        share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights,
    ).to(dtype)


def metadata_of(args):
    """What says in which form the keys are."""
    return {"singleton_local_shards": True} if args.singleton else {}


def number(key, shape, dtype):
    """The whole tensor of a key: seeded by its name."""
    random = np.random.default_rng(zlib.crc32(key.encode()))
    values = random.standard_normal(shape, np.float32) * 0.07
    if "layernorm" in key or "layer_norm" in key:
        values += 1
    values.view(np.uint32)[...] &= 0xFFFF0000  # what bf16 holds too
    return torch.from_numpy(values).to(dtype)


def shards(state):
    """Every sharded tensor in what the model gives to be saved, of those too that it cuts only then."""
    for entry in state.values():
        yield from _tensors(entry.build() if isinstance(entry, ShardedTensorFactory) else entry)


def _tensors(entry):
    if isinstance(entry, ShardedTensor):
        yield entry
    elif isinstance(entry, dict):
        for value in entry.values():
            yield from _tensors(value)
    elif isinstance(entry, (list, tuple)):
        for value in entry:
            yield from _tensors(value)


def numbers_of(shard):
    """The part of the whole tensor that this shard is."""
    whole = number(shard.key, shard.global_shape, shard.data.dtype)
    axes = zip(shard.global_offset, shard.local_shape_with_axes, strict=True)
    return whole[tuple(slice(start, start + length) for start, length in axes)].reshape(shard.data.shape)


def with_axes(shard):
    lead = (1,) * shard.prepend_axis_num
    shard.local_shape_with_axes = (*lead, *shard.data.shape)
    return shard


def filled(model, metadata=None):
    """Give every parameter its numbers."""
    with torch.no_grad():
        for shard in shards(model.sharded_state_dict(metadata=metadata)):
            with_axes(shard).data.copy_(numbers_of(shard))
    return model


def compared(model, metadata=None):
    """Every key with whether its bits are those of `number`."""
    equal_by_key = {}
    for shard in map(with_axes, shards(model.sharded_state_dict(metadata=metadata))):
        equal = torch.equal(shard.data, numbers_of(shard))
        equal_by_key[shard.key] = equal_by_key.get(shard.key, True) and equal
    return equal_by_key


def on_ranks(work, folder, settings):
    """Run `work` on as many forked ranks as the sizes ask for, and show what they said where one fails.

    Ranks that share experts are data parallel too; `dp` of the settings says how many, where more are.
    """
    sizes = {name: settings.get(name, 1) for name in SIZES}
    world = sizes["tp"] * sizes["pp"] * settings.get("dp", sizes["ep"])
    meet = folder / "meet"
    try:
        mp.start_processes(
            rank, (world, work, meet, folder, settings, sizes), nprocs=world, start_method="fork"
        )
    except Exception:
        print(Path(f"{meet}.log").read_text(errors="replace")[-3000:])
        raise
    for left in (meet, Path(f"{meet}.log")):
        left.unlink(missing_ok=True)


def rank(number, world, work, meet, folder, settings, sizes):
    """One of the ranks. It leaves at once: one that takes Python apart may abort; and leaves no process."""
    start(number, world, meet, **sizes)
    work(folder, arguments(settings), sizes)
    dist.barrier()
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(0)


__all__ = [
    "STEP",
    "built",
    "compared",
    "dist_checkpointing",
    "filled",
    "metadata_of",
    "on_ranks",
    "parallel_state",
]
"""Megatron's own modules too: before this one they must not be imported, or they compile."""
