"""A GPT-NeoX-shaped pipeline trained by the real DeepSpeed on CPU ranks: name -> [DIR, SPEC].

SPEC: pp, tp, dp, stage. Every rank keeps its own full-precision weights beside the checkpoint, so
that what is read out of the optimizer can be compared: DIR/masters-<stage>-<tp>.safetensors.
"""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import json
import sys
from pathlib import Path

import deepspeed
import torch
import yaml
from deepspeed.pipe import LayerSpec, PipelineModule, TiedLayerSpec
from deepspeed.runtime.pipe.topology import PipeModelDataParallelTopology
from deepspeed.utils import safe_get_full_fp32_param
from ranks import start
from safetensors.torch import save_file

H, INNER, VOCAB, LAYERS, HEADS = 16, 32, 48, 4, 4


class Embedding(torch.nn.Module):
    def __init__(self, tp):
        super().__init__()
        self.word_embeddings = torch.nn.Embedding(VOCAB // tp, H)

    def forward(self, tokens):
        return self.word_embeddings(tokens)


def head(module, hidden):
    return hidden @ module.word_embeddings.weight.T


class Block(torch.nn.Module):
    def __init__(self, tp):
        super().__init__()
        self.input_layernorm = torch.nn.LayerNorm(H)
        self.post_attention_layernorm = torch.nn.LayerNorm(H)
        self.attention = torch.nn.Module()
        self.attention.query_key_value = torch.nn.Linear(H, 3 * H // tp)
        self.attention.dense = torch.nn.Linear(H // tp, H)
        self.mlp = torch.nn.Module()
        self.mlp.linear1 = torch.nn.Linear(H, INNER // tp)
        self.mlp.linear2 = torch.nn.Linear(INNER // tp, H)

    def forward(self, x):
        mixed = self.attention.query_key_value(self.input_layernorm(x))
        x = x + self.attention.dense(mixed[..., : self.attention.dense.in_features])
        return x + self.mlp.linear2(torch.tanh(self.mlp.linear1(self.post_attention_layernorm(x))))


class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(H)

    def forward(self, x):
        return self.norm(x)


def same(x):
    return x


def loss(out, labels):
    return out.float().square().mean() + labels.float().mean() * 0


def train(rank, folder, spec):
    topology = PipeModelDataParallelTopology(spec["pp"], spec["tp"], spec["dp"])
    at = topology.get_coord(rank)
    torch.manual_seed(1 + at.model)
    tp = spec["tp"]
    tied = TiedLayerSpec("embed", Embedding, tp, tied_weight_attr="word_embeddings.weight")
    again = TiedLayerSpec("embed", Embedding, tp, forward_fn=head, tied_weight_attr="word_embeddings.weight")
    layers = [
        tied,
        same,
        *[LayerSpec(Block, tp) for _ in range(LAYERS)],
        same,
        LayerSpec(Norm),
        again,
    ]
    model = PipelineModule(
        layers, topology=topology, loss_fn=loss, partition_method="uniform", base_seed=1 + at.model
    )
    alike, own = [], []
    for name, parameter in model.named_parameters():
        if "norm" in name or name.endswith(("dense.bias", "linear2.bias")):
            with torch.no_grad():  # what every rank of a layer holds alike
                parameter.copy_(torch.linspace(0.5, 1.5, parameter.numel()))
            alike.append(parameter)
        else:
            parameter.model_parallel = True
            own.append(parameter)
    config = {
        "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": 2,
        "bf16": {"enabled": True},
        "data_types": {"grad_accum_dtype": "fp32"},
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {"stage": spec["stage"]},
    }
    optimizer = torch.optim.SGD([{"params": own}, {"params": alike, "lr": 0.0}], lr=0.05)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    torch.manual_seed(5)

    def batches():
        while True:
            tokens = torch.randint(0, VOCAB // tp, (2, 6))
            yield tokens, tokens

    engine.train_batch(data_iter=batches())
    engine.save_checkpoint(str(folder), tag="global_step1")
    masters = {n: safe_get_full_fp32_param(p) for n, p in engine.module.named_parameters()}
    if at.data == 0:
        save_file(masters, folder / f"masters-{at.pipe}-{at.model}.safetensors")
    if rank == 0:
        configs = folder / "global_step1/configs"
        configs.mkdir()
        said = {
            "num-layers": LAYERS, "hidden-size": H, "num-attention-heads": HEADS,
            "norm": "layernorm",
            "max-position-embeddings": 32, "pos-emb": "rotary", "model-parallel-size": tp,
        }  # fmt: skip
        (configs / "a.yml").write_text(yaml.safe_dump(said))


if __name__ == "__main__":
    for place, spec in json.loads(sys.argv[1]).values():
        start(train, spec["pp"] * spec["tp"] * spec["dp"], Path(place), spec)
