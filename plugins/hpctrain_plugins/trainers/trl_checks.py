"""What can be wrong with `[train.trl]`, known before the queue."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import attrs

from hpctrain.plugin import Problem, RunSpec
from hpctrain_plugins.trainers import starts
from hpctrain_trl.settings import FIELDS, libraries, together

_SPEC = re.compile(r"(?P<name>[^/:]+)(?:/(?P<below>[^:]+))?(?::(?P<split>.+))?")
_LISTED = ("venv", "uv", "conda")
"""Environments that hold what their lists say; an image or a folder may have more."""
_UNTRAINED = "from_scratch = true      (with train.trl.config: random weights of that shape)"
_HUB = re.compile(r"[\w.-]+/[\w.-]+\Z")


def parts(spec: str) -> tuple[str, str, str]:
    """The asset's name, the path below it and the split of `asset/below:split`."""
    match = _SPEC.fullmatch(spec)
    return (match["name"], match["below"] or "", match["split"] or "") if match else (spec, "", "")


def needs_no_model(options: Any) -> bool:
    """Whether the run file itself says what the model is."""
    return bool(options.from_scratch and options.config)


def problems(options: Any, run: RunSpec, world: int) -> Iterator[Problem]:
    """Everything at once."""
    for field, message in together(options):
        yield Problem(code="trl-setting", message=message, where=f"train.trl.{field}")
    yield from _assets(options, run)
    yield from starts.problems(run)
    yield from _start(options, run)
    yield from _shape(options)
    yield from _packages(options, run)
    if options.max_steps and run.checkpoint.every is None and not options.save_steps:
        yield from _unsaved(options, run)
    if options.zero_stage and world == 1:
        yield Problem(
            code="trl-zero",
            message="zero_stage divides memory among ranks, and this run has one",
            where="train.trl.zero_stage",
            fatal=False,
        )


def _assets(options: Any, run: RunSpec) -> Iterator[Problem]:
    for field in ("model", "tokenizer", "train_dataset", "eval_dataset"):
        spec = getattr(options, field)
        unused = not spec or (field == "model" and (needs_no_model(options) or run.checkpoint.start))
        if unused or spec.startswith("/"):
            continue
        name = parts(spec)[0]
        if name not in run.assets:
            problem = _unknown(field, spec, name, run)
            shape_alone = field == "model" and options.config and not options.from_scratch
            yield attrs.evolve(problem, hint=_UNTRAINED) if shape_alone else problem
    if needs_no_model(options) and not options.tokenizer:
        yield Problem(
            code="trl-tokenizer",
            message="a model from random weights needs the tokenizer of some asset",
            where="train.trl.tokenizer",
            hint='tokenizer = "model"',
        )


def _start(options: Any, run: RunSpec) -> Iterator[Problem]:
    """`start` is the model; a second answer to that contradicts it."""
    start, is_default = run.checkpoint.start, options.model == FIELDS["model"].default
    if not start or start.rstrip("/") in (options.model.rstrip("/"), f"{{assets.{options.model}}}"):
        return
    if options.from_scratch:
        yield Problem(
            code="start-conflict",
            message=f"start is {start}, and from_scratch begins with random weights",
            where="checkpoint.start",
            hint="remove from_scratch in [train.trl]",
            notes=("train.trl.from_scratch is true",),
        )
    elif not is_default or options.model in run.assets:
        place = "assets.model" if is_default else "train.trl.model"
        yield Problem(
            code="start-conflict",
            message=f"start is {start}, and {place} is another model: training starts at `start`",
            where="checkpoint.start",
            hint=f"remove {place}",
            fatal=not is_default,
        )


def _unknown(field: str, spec: str, name: str, run: RunSpec) -> Problem:
    from difflib import get_close_matches

    near = get_close_matches(name, run.assets, 1)
    hint = f'{field} = "{near[0]}{spec[len(name) :]}"' if near else f'[assets]\n{field} = {{ hub = "…" }}'
    if not near and _HUB.match(spec.split(":")[0]):
        hint = f'[assets]\n{field} = {{ hub = "{spec.split(":")[0]}" }}'
    assets = ", ".join(run.assets) or "none"
    return Problem(
        code="unknown-asset",
        message=f"there is no asset {name}",
        where=f"train.trl.{field}",
        hint=hint,
        notes=(f"assets: {assets}",),
    )


def _shape(options: Any) -> Iterator[Problem]:
    if not options.config:
        return
    where = "train.trl.config"
    if not isinstance(options.config.get("model_type"), str):
        yield Problem(
            code="trl-config",
            message="config has no model_type",
            where=where,
            hint='model_type = "qwen3"',
        )
    heads, hidden = (options.config.get(key) for key in ("num_attention_heads", "hidden_size"))
    if _counts(heads, hidden) and "head_dim" not in options.config and hidden % heads:
        message = f"hidden_size {hidden} cannot be divided among {heads} heads"
        yield Problem(code="trl-config", message=message, where=where)
    kv = options.config.get("num_key_value_heads")
    if _counts(heads, kv) and heads % kv:
        message = f"num_attention_heads {heads} is not a multiple of num_key_value_heads {kv}"
        yield Problem(code="trl-config", message=message, where=where)
    longest = options.config.get("max_position_embeddings")
    if _counts(longest) and options.max_length > longest:
        message = f"max_length {options.max_length} is longer than the model's {longest} positions"
        yield Problem(code="trl-config", message=message, where="train.trl.max_length")


def _packages(options: Any, run: RunSpec) -> Iterator[Problem]:
    """Libraries that nothing names; your own code may bring them, and so may the site's Python."""
    env = run.environment
    every = (*env.packages, *env.compile)
    if env.use not in _LISTED or getattr(env.options, "system_site", False):
        return
    if not all(package.requirement for package in every):
        return
    option_words = (word for key in ("first", "specs") for word in getattr(env.options, key, ()))
    requirements = " ".join(
        (*(p.requirement for p in every), *option_words, run.texts.get(env.requirements, ""))
    )
    missing = [
        n for n in libraries(options) if not re.search(rf"(?<![\w.-]){n}(?![\w.-])", requirements, re.I)
    ]
    if missing:
        yield Problem(
            code="trl-packages",
            message=f"the trainer needs {', '.join(missing)}, and no package names it",
            where="environment.packages",
            hint=f"packages = {json.dumps(missing)}",
            fatal=False,
        )


def _counts(*values: object) -> bool:
    return all(type(value) is int and value > 0 for value in values)


def _unsaved(options: Any, run: RunSpec) -> Iterator[Problem]:
    time = run.resources.time
    if time is not None and time.minutes > 60:
        yield Problem(
            code="trl-unsaved",
            message=f"the only checkpoint is after step {options.max_steps}",
            where="checkpoint.every",
            hint='[checkpoint]\nevery = "30m"',
            notes=("a run that is stopped by a signal also saves",),
            fatal=False,
        )
