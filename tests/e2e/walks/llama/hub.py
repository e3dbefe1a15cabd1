"""What the Frontier document takes from the hub, small: a gated model with its tokenizer, and the data."""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import sys
from pathlib import Path

import datasets
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

hub = Path(sys.argv[1])
model = hub / "models/meta-llama/Meta-Llama-3-8B"
data = hub / "datasets/mlabonne/guanaco-llama2-1k/data"
data.mkdir(parents=True)

torch.manual_seed(7)
letters = ["<|begin_of_text|>", "<|end_of_text|>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
tokenizer = Tokenizer(models.BPE({letter: n for n, letter in enumerate(letters)}, []))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
ends = {"bos_token": letters[0], "eos_token": letters[1]}
PreTrainedTokenizerFast(tokenizer_object=tokenizer, **ends).save_pretrained(model)
shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
config = LlamaConfig(vocab_size=len(letters), num_key_value_heads=2, max_position_embeddings=64, **shape)
LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(model)
(model / "original").mkdir()
(model / "original/consolidated.00.pth").write_bytes(b"twice the size, and read by nobody here")
(model / ".gated").touch()

rows = [
    f"<s>[INST] what is {n}? [/INST] {n} is {n} </s>" for n in range(126)
]  # two ranks: 63 steps, as the document's
datasets.Dataset.from_dict({"text": rows}).to_parquet(data / "train-00000-of-00001.parquet")
