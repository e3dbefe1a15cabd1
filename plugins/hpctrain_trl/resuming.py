"""Where to go on from, and a refusal where that would not be the same run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpctrain_job import resume
from hpctrain_trl.environment import Ranks
from hpctrain_trl.errors import BadConfig
from hpctrain_trl.model import saved_config
from hpctrain_trl.settings import CHECKPOINT, CHECKPOINT_LAST, Settings

_SHAPE_KEYS = ("model_type", "hidden_size", "num_hidden_layers", "vocab_size")
_ADAPTER = ("r", "lora_alpha")


def start(settings: Settings, folder: Path, model: Any, ranks: Ranks) -> Path | None:
    """The checkpoint to go on from, or None for a fresh start, said aloud either way.

    A checkpoint that the user named serves while the run has none; one that cannot be used is an error: never
    silently from 0.
    """
    if settings.resume == "never":
        ranks.say("starting from step 0: resume = never")
        return None
    contents = not resume.is_checked()
    checkpoint = resume.newest(folder, CHECKPOINT, CHECKPOINT_LAST, ranks.say, contents=contents)
    if checkpoint is None and resume.complete(folder, CHECKPOINT, CHECKPOINT_LAST):
        message = f"no checkpoint in {folder} is whole"
        raise BadConfig("resume", message, "resume = never starts again from 0")
    if checkpoint is None and settings.resume != "auto":
        checkpoint = _named(Path(settings.resume), ranks)
    if checkpoint is None:
        ranks.say(f"starting from step 0: no checkpoint in {folder}")
        return None
    _same_run(checkpoint.path, model, settings, ranks)
    ranks.say(f"going on after step {checkpoint.step} from {checkpoint.path}")
    return checkpoint.path


def _named(path: Path, ranks: Ranks) -> resume.Checkpoint:
    """The checkpoint `path`, or the newest below it."""
    checkpoint = next(
        (c for c in resume.complete(path.parent, CHECKPOINT, CHECKPOINT_LAST) if c.path.name == path.name),
        None,
    )
    if checkpoint is not None:
        fault = resume.damage(path)
        if fault:
            raise BadConfig("resume", f"{path} is damaged: {fault}")
        return checkpoint
    newest = resume.newest(path, CHECKPOINT, CHECKPOINT_LAST, ranks.say)
    if newest is None:
        raise BadConfig("resume", f"{path} is not a complete checkpoint and contains none")
    return newest


def _same_run(path: Path, model: Any, settings: Settings, ranks: Ranks) -> None:
    saved = saved_config(path)
    current = {name: getattr(model.config, name, None) for name in _SHAPE_KEYS}
    if settings.method == "lora":
        current |= {"r": settings.lora_r, "lora_alpha": settings.lora_alpha}
    for name in (*_SHAPE_KEYS, *_ADAPTER):
        if name in saved and name in current and saved[name] != current[name]:
            message = f"{path} is of another model: its {name} is {saved[name]}, not {current[name]}"
            raise BadConfig("resume", message)
    parts = len(list(path.glob("global_step*/*_optim_states.pt")))
    if parts and parts != ranks.world:
        message = f"{path} was saved by {parts} ranks, and ZeRO cannot go on with {ranks.world}"
        wider = f"{path.parent}-{ranks.world}-ranks/{path.name}"
        convert = f"hpctrain convert {path} --ranks {ranks.world} -o {wider}"
        hint = f'{convert}, then [checkpoint] resume = "{wider}" in a new run; or [resources] gpus = {parts}'
        raise BadConfig("resume", message, hint)
