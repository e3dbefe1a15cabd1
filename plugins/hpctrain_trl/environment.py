"""Ranks and rendezvous, from the environment only."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import threading
from collections.abc import MutableMapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NoReturn, TypeVar

from hpctrain_job import gpus
from hpctrain_trl.errors import BadConfig
from hpctrain_trl.settings import Settings, libraries

Value = TypeVar("Value")

_UNTIL_THE_END: list[object] = []
_NAMES = {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": 1}


@dataclass(frozen=True)
class Ranks:
    """Which of how many processes this is."""

    rank: int = 0
    local: int = 0
    world: int = 1

    @property
    def first(self) -> bool:
        return self.rank == 0

    def say(self, text: str) -> None:
        """Print a line once, not once a rank."""
        if self.first:
            print(text, flush=True)

    def leave(self) -> None:
        """End with the others, and let go of them.

        Starters end what is left some time after the first rank (`srun --wait`), while rank 0 may still save.
        """
        from torch import distributed

        if self.world > 1 and distributed.is_initialized():
            distributed.barrier()
            distributed.destroy_process_group()


def until_the_end(value: Value) -> Value:
    """Keep this object, so that only the end of the process lets go of it.

    torch's Reducer ends a thread of gloo while it holds Python's lock, and that thread may be waiting for the
    lock to let go of a tensor: then the rank stays for ever. Of two ranks on a loaded machine one of ten did.
    """
    _UNTIL_THE_END.append(value)
    return value


def end(code: int) -> NoReturn:
    """Exit as Python does, but without taking it apart.

    A thread of torch that lets go of a tensor just then aborts the process, when all is saved. The aborts
    that were seen here look like it: https://github.com/pytorch/pytorch/issues/190489
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def ranks(env: MutableMapping[str, str] = os.environ) -> Ranks:
    """Read the ranks and mend what the libraries would misread; call it before they are imported.

    One rank alone needs no process group, so its variables go. A rank that sees a single GPU calls it
    number 0, whatever its place on the node.
    """
    try:
        rank, local, world = (int(env.get(name) or default) for name, default in _NAMES.items())
    except ValueError as error:
        raise BadConfig("ranks", f"RANK, LOCAL_RANK and WORLD_SIZE must be numbers: {error}") from error
    if not 0 <= rank < world:
        raise BadConfig("ranks", f"RANK {rank} is not below WORLD_SIZE {world}")
    if world == 1:
        for name in _NAMES:
            env.pop(name, None)
        return Ranks()
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if not env.get(name)]
    if missing:
        raise BadConfig("ranks", f"{' and '.join(missing)} must name where rank 0 listens")
    return Ranks(rank, local, world)


def accelerator() -> Any:
    """torch's module of the GPUs that are here: torch.cuda (also AMD's) or torch.xpu (Intel's); else None."""
    import torch

    return gpus.accelerator(torch)


def one_visible_gpu(env: MutableMapping[str, str] = os.environ) -> None:
    """Call the only visible GPU number 0."""
    module = accelerator()
    if module and module.device_count() == 1 and env.get("LOCAL_RANK"):
        env["LOCAL_RANK"] = "0"


def check_installed(settings: Settings) -> None:
    """Refuse settings that need a library which this environment does not have."""
    required = libraries(settings)
    for name in required:
        if find_spec(name) is None:
            hint = f'packages = ["{name}"]'
            raise BadConfig("package", f"{name} is not installed in this environment", hint)
    if "deepspeed" in required:
        _check_compiler()


def _check_compiler() -> None:
    """DeepSpeed compiles its collectives at the first start on a processor, and dies of a traceback."""
    compiler = os.environ.get("CXX") or "c++"
    if not accelerator() and shutil.which(compiler) is None:
        message = f"DeepSpeed compiles when it starts, and there is no compiler {compiler} on this node"
        raise BadConfig("compiler", message, "zero_stage = 0")


def versions() -> dict[str, str]:
    """The libraries that decide what a number means."""
    from importlib import metadata

    named = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "deepspeed")
    # The first on sys.path is the one that is imported: an environment may lie over another.
    installed = {d.metadata["Name"]: d.version for d in reversed(list(metadata.distributions()))}
    python = ".".join(map(str, sys.version_info[:3]))
    return {"python": python, **{name: installed[name] for name in named if name in installed}}
