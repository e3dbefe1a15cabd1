"""`[checkpoint] export` as a step: the run's newest checkpoint in another format, in the environment.

It runs where training could, because only there is the environment, whose numpy it needs; what else
the conversion imports travels with the job.
"""

from __future__ import annotations

from hpctrain.plugin import Cmd, Join, Launch, Layout, Need, Step, Var, Word, hookimpl
from hpctrain.toolbox import installed_plugins
from hpctrain_plugins.trainers.config_file import json_file

HPCTRAIN_API = 1

READ_ONLY = ("dcp", "hf-sharded", "megatron-legacy", "peft")
"""Formats of ours that nothing is written in; a module says so too, but importing it needs numpy."""
_WITH_OPTIMIZER = ("deepspeed-universal", "deepspeed-zero")
"""Formats that only a checkpoint of ZeRO becomes, and only where it goes on on other ranks."""

_PROGRAM = "hpctrain_plugins.checkpoints.export.in_job"
_CODE = ("hpctrain", "hpctrain_plugins", "lib/attr", "lib/attrs", "lib/yaml")
_STEP, _SETTINGS = "export", "convert.json"
_MINUTES = 60
_THREADS = 2


@hookimpl
def convert_checkpoint(source: str, target: str, checkpoint: Word, layout: Layout) -> list[Step] | None:
    """One step that writes `$HPC_CHECKPOINTS/<target>/<name of the checkpoint>`, verified."""
    entries_by_format = {name: installed_plugins().get(f"checkpoints:{name}") for name in (source, target)}
    modules = {name: entries[0].module for name, entries in entries_by_format.items() if entries}
    if len(modules) < len(entries_by_format) or target in (*READ_ONLY, *_WITH_OPTIMIZER):
        return None
    settings = {
        "from": source,
        "to": target,
        "formats": modules,
        "folder": layout.folder,
        "name": layout.name,
        "last": layout.complete,
        "threads": _THREADS,
    }
    command = Cmd.of(
        *("python", "-m", _PROGRAM, checkpoint, Join(Var("HPC_CHECKPOINTS"), f"/{target}")),
        Join(Var("HPC_RUN"), f"/steps/{_STEP}/{_SETTINGS}"),
    )
    return [
        Step(
            name=_STEP,
            commands=(command,),
            needs=frozenset({Need.TARGET}),
            inside=True,
            launch=Launch(cpus_per_rank=_THREADS),
            minutes=_MINUTES,
            files=(json_file(_SETTINGS, settings),),
            code=tuple(sorted({*_CODE, *(module.partition(".")[0] for module in modules.values())})),
        )
    ]
