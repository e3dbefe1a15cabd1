"""Which of the tensors that a trainer saved together are the weights, and what the model calls them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from hpctrain.plugin import ConfigError

Path: TypeAlias = tuple[str, ...]
"""The keys that lead to a tensor in what was saved; the last one is its name."""

_ROOTS = ("model", "module", "state_dict")
"""Where trainers put the weights when they save more than weights."""

_STATES = frozenset(
    {
        *("optimizer", "optimizers", "optim", "opt", "optimizer_state", "optimizer_states"),
        *("optimizer_state_dict", "lr_scheduler", "lr_schedulers", "scheduler", "train_state"),
        *("dataloader", "rng", "rng_state", "rng_states"),
    }
)
"""Roots of what training needs beside the weights."""

_PARTS_OF_STATES = ("state", "param_groups")
_MOMENTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "exp_inf")
"""What optimizers keep of each weight, in the weight's own shape."""

_EMBEDDING = re.compile(
    r"(?:(?P<prefix>.+)\.)??(?:model\.embed_tokens|gpt_neox\.embed_in|transformer\.wte|"
    r"backbone\.embeddings?|tok_embeddings)\.weight$"
)
"""The embeddings of the families; a name in front of one is a wrapper's."""


def weights(paths: Mapping[str, Path]) -> dict[str, str]:
    """Saved name -> the model's own name; ConfigError where nothing shows which are the weights."""
    left = _without_states(paths)
    root = _root(left)
    names = {saved: ".".join(path[len(root) :]) for saved, path in left.items() if path[: len(root)] == root}
    moment = next((saved for saved, name in names.items() if _word(name, -1) in _MOMENTS), None)
    if moment:
        _refuse(f"{moment} belongs to an optimizer, and nothing shows which tensors are the weights", moment)
    prefix = _prefix(names.values())
    return {saved: name.removeprefix(prefix) for saved, name in names.items()}


def _without_states(paths: Mapping[str, Path]) -> dict[str, Path]:
    """All but what roots of optimizers and of the training loop hold."""
    moments = {_word(path[0], 0) for path in paths.values() if _word(path[-1], -1) in _MOMENTS}
    words = {*_STATES, *(_PARTS_OF_STATES if "state" in moments else ())}
    left = {saved: path for saved, path in paths.items() if not words & {*path[:-1], _word(path[0], 0)}}
    if not left:
        _refuse("it holds the state of an optimizer and no weights", next(iter(paths), ""))
    return left


def _root(paths: Mapping[str, Path]) -> Path:
    """The keys in front of the weights: a root's usual name, or where a family's embedding lies."""
    containers = {path[:-1] for path in paths.values()}
    usual = [c[:depth] for c in containers for depth in range(1, len(c) + 1) if c[depth - 1] in _ROOTS]
    if usual:
        return min(usual, key=lambda root: (len(root), _ROOTS.index(root[-1])))
    embeddings = {path[:-1] for path in paths.values() if _EMBEDDING.match(path[-1])}
    roots = embeddings or containers
    if len(roots) > 1:
        listed = ", ".join(sorted(".".join(root) or "the top" for root in roots))
        _refuse(f"several things in it may be the weights: {listed}", listed)
    return roots.pop()


def _prefix(names: Iterable[str]) -> str:
    """What a wrapper put in front of every name, as the family's embedding shows."""
    listed = list(names)
    for name in listed:
        match = _EMBEDDING.match(name)
        prefix = f"{match['prefix']}." if match and match["prefix"] else ""
        if prefix and all(name.startswith(prefix) for name in listed):
            return prefix
    return ""


def _word(name: str, index: int) -> str:
    return name.split(".")[index]


def _refuse(complaint: str, where: str) -> None:
    hint = "save the model's state under the key model"
    raise ConfigError.of("checkpoint-unsupported", complaint, where=where, hint=hint)
