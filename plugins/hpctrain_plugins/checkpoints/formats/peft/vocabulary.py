"""Embedding and head of a base under an adapter: tied weights that part, and a vocabulary that has grown."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from hpctrain.plugin import IntegrityError
from hpctrain_plugins.checkpoints.tensors import Model, Tensor

_EMBEDDING = re.compile(r"(?:.+\.)(?:embed_tokens|embed_in|wte|word_embeddings|embeddings)\.weight$")
_HEAD = re.compile(r"(?:.+\.)?(?:lm_head|embed_out)\.weight$")
_WITH_HEAD = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")


def is_vocabulary(name: str) -> bool:
    """Whether the rows of this weight are the tokens of the vocabulary."""
    return bool(_EMBEDDING.match(name) or _HEAD.match(name))


def is_tied(model: Model) -> bool:
    """The head is the embedding; many families say so by the absence of the setting."""
    architectures = model.config.get("architectures") or [""]
    default = str(architectures[0]).endswith(_WITH_HEAD)
    return bool(model.config.get("tie_word_embeddings", default))


def untie(model: Model, before: Mapping[str, Tensor], changed: Collection[str]) -> None:
    """Give the model a head of its own where an adapter changes the embedding that was the head too.

    The live adapter model goes on computing its head with the weight of the base.
    """
    if not is_tied(model) or any(_HEAD.match(name) for name in model.tensors):
        return
    for name in sorted(changed):
        if name not in before or not _EMBEDDING.match(name):
            continue
        head = "embed_out.weight" if name.endswith("embed_in.weight") else "lm_head.weight"
        model.tensors[head] = before[name].named(head)
        model.config = {**model.config, "tie_word_embeddings": False}
        model.decisions["untied"] = head
        model.warnings.append(
            f"the adapter changes {name} and not the head that was tied to it: {head} is now its own weight"
        )
        return


def resize(model: Model, sizes: Mapping[str, int]) -> None:
    """Set the vocabulary to the rows that the adapter brings (`sizes`); embedding and head must agree."""
    if not sizes:
        return
    rows = next(iter(sizes.values()))
    for name, tensor in model.tensors.items():
        if is_vocabulary(name) and tensor.shape[0] != rows:
            grown = next(iter(sizes))
            message = f"the adapter brings {rows} rows of {grown}, but {name} has {tensor.shape[0]}"
            hint = "save the adapter with save_embedding_layers=True"
            raise IntegrityError.of("checkpoint-base", message, where=name, hint=hint)
    nested = model.config.get("text_config")
    if isinstance(nested, dict) and "vocab_size" in nested:
        model.config = {**model.config, "text_config": {**nested, "vocab_size": rows}}
    if not isinstance(nested, dict) or "vocab_size" in model.config:
        model.config = {**model.config, "vocab_size": rows}
    model.decisions["vocab_size"] = rows
