"""Small models as transformers saves them: arguments DIR, JSON, name -> [CLASS, SETTINGS], [SHARD_SIZE]."""

# mypy: ignore-errors
# It runs in the environment with torch, which the type checker does not see.

import json
import sys
from pathlib import Path

import transformers

SIZES = {
    "vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip

if __name__ == "__main__":
    for name, (kind, settings) in json.loads(sys.argv[2]).items():
        model = getattr(transformers, kind)
        sizes = dict(SIZES)
        if "NeoX" in kind:
            del sizes["num_key_value_heads"]
        model(model.config_class(**sizes | settings)).save_pretrained(
            Path(sys.argv[1]) / name, max_shard_size=sys.argv[3] if len(sys.argv) > 3 else "5GB"
        )
