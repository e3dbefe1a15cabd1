"""`mix`: several prepared sets with weights, written as each trainer's configuration has it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from hpctrain_tokens.commands.answer import Answer
from hpctrain_tokens.faults import DataError
from hpctrain_tokens.prepare import Tell

TRAINERS = ("neox", "megatron", "nanotron", "automodel")


def add_mix(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sets", nargs="+", metavar="PREFIX=WEIGHT", help="prepared files with their share")
    parser.add_argument("--for", dest="trainer", choices=TRAINERS, required=True, help="whose configuration")


def run_mix(args: argparse.Namespace, _: Tell) -> Answer:
    """The part of a configuration that mixes."""
    weighted = [_weighted(word) for word in args.sets]
    total = sum(weight for _, weight in weighted)
    sets = {name: weight / total for name, weight in weighted}
    if len(sets) != len(weighted):
        raise DataError.of("usage", "a set is named twice", hint="PREFIX=WEIGHT, each prefix once")
    for name in sets:
        _require_set(name, args.trainer)
    part = {"neox": _neox, "megatron": _megatron, "nanotron": _nanotron, "automodel": _automodel}[
        args.trainer
    ](sets)
    text = part if isinstance(part, str) else json.dumps(part, indent=2)
    return Answer("data-mix", text.splitlines(), {"for": args.trainer, "config": part})


def _weighted(word: str) -> tuple[str, float]:
    name, _, number = word.rpartition("=")
    try:
        weight = float(number)
    except ValueError:
        weight = 0.0
    if not name or not 0 < weight < float("inf"):
        raise DataError.of(
            "usage", f"{word} is not PREFIX=WEIGHT with a weight above zero", hint="data/a=0.7"
        )
    return name, weight


def _require_set(name: str, trainer: str) -> None:
    ends = {"neox": ".idx", "megatron": ".idx"}.get(trainer, "")
    if not Path(f"{name}{ends}").exists():
        raise DataError.of("no-input", f"{name}{ends} is not there", file=f"{name}{ends}")


def _neox(sets: dict[str, float]) -> dict[str, Any]:
    """GPT-NeoX takes label files in the same order, when all sets have them."""
    labels = [name.removesuffix("_document") + "_label_document" for name in sets]
    have = [Path(f"{label}.idx").exists() for label in labels]
    if any(have) and not all(have):
        missing = labels[have.index(False)]
        raise DataError.of(
            "no-input", f"{missing}.idx is not there, but other sets have labels", file=missing
        )
    config: dict[str, Any] = {"train_data_paths": list(sets)}
    if all(have):
        config["train_label_data_paths"] = labels
    return {**config, "train_data_weights": list(sets.values())}


def _megatron(sets: dict[str, float]) -> str:
    return "--data-path " + " ".join(f"{weight:.6g} {name}" for name, weight in sets.items())


def _nanotron(sets: dict[str, float]) -> dict[str, Any]:
    return {"dataset": {"dataset_folder": dict(sets)}}


def _automodel(sets: dict[str, float]) -> dict[str, Any]:
    """One path each; Automodel has no weights, so only equal ones can be said."""
    if len({round(weight, 9) for weight in sets.values()}) > 1:
        raise DataError.of(
            "data-weights", "Automodel's chat data has no weights; only equal ones can be written"
        )
    return {"dataset": {"path_or_dataset_id": list(sets) if len(sets) > 1 else next(iter(sets))}}
