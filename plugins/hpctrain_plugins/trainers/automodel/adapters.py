"""Which linear layers get adapters, as Automodel's own matcher chooses, and what is wrong with a choice."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hpctrain_job.arithmetic.model_shape import Shape
from hpctrain_plugins.trainers.external.config import Config, Fault

MAMBA = re.compile(r"mamba|jamba|zamba|bamba|falcon-?h1|granite-?4.*-h", re.IGNORECASE)
NEMOTRON_H = re.compile(r"(?<!llama-3\.1-)nemotron-?(?:h|3|nano)", re.IGNORECASE)
ALL, TARGETS, EXCLUDED = "match_all_linear", "target_modules", "exclude_modules"
_LAYER = "model.layers.0.mixer."
_HEAD = "lm_head"


def faults(config: Config, models: Iterable[str]) -> Iterator[Fault]:
    """Choices that exclude each other, and adapters where they have no effect."""
    choices = [key for key in (ALL, TARGETS, EXCLUDED) if config.get("peft", key)]
    if len(choices) > 1:
        yield Fault(
            code="trainer-conflict",
            message=f"{' and '.join(choices)} are set; Automodel takes only one of them",
            path=("peft", choices[0]),
            hint=f"remove {choices[0]}",
            notes=(f"{EXCLUDED} alone puts adapters on all other linear layers, {_HEAD} among them",),
        )
        return
    yield from _no_layer(config)
    name = next((model for model in models if MAMBA.search(model) or NEMOTRON_H.search(model)), "")
    if config.table("peft") and name and adapts(config, f"{_LAYER}out_proj"):
        yield Fault(
            code="lora-mamba",
            message="adapters on out_proj of Mamba layers: their fused kernel reads the weight itself",
            path=("peft", *choices),
            hint=f'{EXCLUDED}: ["*.out_proj"]',
            notes=(
                f"{name} has Mamba layers; such adapters have no effect, or break the step",
                f"{EXCLUDED} stands alone, without {ALL} and {TARGETS}",
            ),
            fatal=False,
        )


def _no_layer(config: Config) -> Iterator[Fault]:
    """Automodel compares whole names, model.layers.0.self_attn.q_proj, where PEFT takes the last part."""
    for key in (TARGETS, EXCLUDED):
        for word in _words(config, key):
            if re.fullmatch(r"\w+_proj", word):
                yield Fault(
                    code="lora-layer",
                    message=f"no layer is called {word}: Automodel compares the whole name of each layer",
                    path=("peft", key),
                    hint=f'{key}: ["*.{word}"]',
                    fatal=False,
                )


def adapts(config: Config, layer: str) -> bool:
    """Whether the linear layer of this full name gets adapters."""
    if config.get("peft", ALL):
        return True
    excluded = _words(config, EXCLUDED)
    chosen = _words(config, TARGETS) or ([] if excluded else ["*_proj"])
    if chosen:
        return any(_pattern(word).match(layer) for word in chosen)
    return not any(_pattern(word).match(layer) for word in excluded)


def count(config: Config, shape: Shape) -> int | None:
    """Weights of all adapters; None where a choice is of some layers only."""
    if any(re.search(r"\d|layers", word) for key in (TARGETS, EXCLUDED) for word in _words(config, key)):
        return None
    rank = config.number("peft", "dim", default=8)
    weights = shape.adapters(rank, lambda name: adapts(config, f"{_LAYER}{name}"))
    head = rank * (shape.hidden + shape.vocab) if adapts(config, _HEAD) else 0
    return None if weights is None else weights + head


def _words(config: Config, key: str) -> list[str]:
    """One pattern or several."""
    rule = config.get("peft", key)
    return [rule] if isinstance(rule, str) else [str(word) for word in rule] if isinstance(rule, list) else []


def _pattern(text: str) -> re.Pattern[str]:
    """`*` and `.*` stand for anything; behind a whole name, `.*` is what lies below it."""
    parts = re.split(r"(\.?\*)", text)
    pattern = ""
    for number, part in enumerate(parts):
        before = parts[number - 1] if number else ""
        below = before.startswith(".") or (number == 1 and before) or re.search(r"\.\d+$", before)
        pattern += re.escape(part) if number % 2 == 0 else r"(\..*)?" if part == ".*" and below else ".*"
    return re.compile(f"^{pattern}$")
