"""Where to go on from, and a refusal where that would not be the same run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpctrain_job import resume
from hpctrain_trl.environment import Ranks
from hpctrain_trl.errors import BadConfig
from hpctrain_trl.model import saved_config
from hpctrain_trl.settings import CHECKPOINT, CHECKPOINT_LAST, Settings

_SAME = ("model_type", "hidden_size", "num_hidden_layers", "vocab_size")
_ADAPTER = ("r", "lora_alpha")


def start(settings: Settings, folder: Path, model: Any, ranks: Ranks) -> Path | None:
    """The checkpoint to go on from, or None for a fresh start, said aloud either way.

    A checkpoint that the user named and that cannot be used is an error: never silently from 0.
    """
    if settings.resume == "never":
        ranks.say("starting from step 0: resume = never")
        return None
    if settings.resume == "auto":
        found = resume.newest(folder, CHECKPOINT, CHECKPOINT_LAST, ranks.say)
        if found is None and resume.complete(folder, CHECKPOINT, CHECKPOINT_LAST):
            said = f"no checkpoint in {folder} is whole"
            raise BadConfig("resume", said, "resume = never starts again from 0")
    else:
        found = _named(Path(settings.resume), ranks)
    if found is None:
        ranks.say(f"starting from step 0: no checkpoint in {folder}")
        return None
    _same_run(found.path, model, settings, ranks)
    ranks.say(f"going on after step {found.step} from {found.path}")
    return found.path


def _named(path: Path, ranks: Ranks) -> resume.Checkpoint:
    """The checkpoint `path`, or the newest below it."""
    one = next(
        (c for c in resume.complete(path.parent, CHECKPOINT, CHECKPOINT_LAST) if c.path.name == path.name),
        None,
    )
    if one is not None:
        fault = resume.damage(path)
        if fault:
            raise BadConfig("resume", f"{path} is damaged: {fault}")
        return one
    found = resume.newest(path, CHECKPOINT, CHECKPOINT_LAST, ranks.say)
    if found is None:
        raise BadConfig("resume", f"{path} is no complete checkpoint and holds none")
    return found


def _same_run(path: Path, model: Any, settings: Settings, ranks: Ranks) -> None:
    saved = saved_config(path)
    here = {name: getattr(model.config, name, None) for name in _SAME}
    if settings.method == "lora":
        here |= {"r": settings.lora_r, "lora_alpha": settings.lora_alpha}
    for name in (*_SAME, *_ADAPTER):
        if name in saved and name in here and saved[name] != here[name]:
            said = f"{path} is of another model: its {name} is {saved[name]}, not {here[name]}"
            raise BadConfig("resume", said)
    parts = len(list(path.glob("global_step*/*_optim_states.pt")))
    if parts and parts != ranks.world:
        said = f"{path} was saved by {parts} ranks, and ZeRO cannot go on with {ranks.world}"
        raise BadConfig("resume", said, f"gpus = {parts}")
