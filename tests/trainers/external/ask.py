"""Ask a trainer's own code what it says of every case: `python -m tests.trainers.external.ask TRAINER`.

Run by an interpreter that has the trainer's own package (NeoX and nanotron: their checkout on PYTHONPATH),
torch and attrs; no GPU is needed. Prints the table of `data/verdicts.json`: an empty text is consent.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import json
import logging
import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.trainers.external.cases import CASES, Case, text_of

SHOWN = 110
"""Characters of a verdict that are kept."""


def verdicts(trainer: str) -> dict[str, str]:
    """What the trainer says of each case."""
    judge = JUDGES[trainer]()
    return {case.name: _said(judge, trainer, case) for case in CASES[trainer]}


def _said(judge: Callable[[list[str], int], None], trainer: str, case: Case) -> str:
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, text in text_of(trainer, case).items():
            path = Path(folder) / name
            path.write_text(text)
            paths.append(str(path))
        try:
            judge(paths, case.gpus)
        except (Exception, SystemExit) as error:
            words = " ".join(str(error).split()) or "exit"
            return f"{type(error).__name__}: {words}"[:SHOWN]
    return ""


def automodel() -> Callable[[list[str], int], None]:
    """The command line's recipe, the recipe's typed sections, its mesh and its scheduler."""
    from nemo_automodel.cli.utils import load_yaml, resolve_recipe_name
    from nemo_automodel.components._peft.module_matcher import ModuleMatcher
    from nemo_automodel.components.config.loader import load_yaml_config
    from nemo_automodel.recipes._dist_utils import create_distributed_setup_from_config
    from nemo_automodel.recipes._typed_config import RecipeConfig
    from torch import distributed, nn
    from torch.testing._internal.distributed.fake_pg import FakeStore

    def judge(paths: list[str], gpus: int) -> None:
        recipe = load_yaml(paths[0]).get("recipe")
        target = recipe.get("_target_") if isinstance(recipe, dict) else recipe
        if not target:
            raise SystemExit("YAML config must specify a recipe target.")
        resolve_recipe_name(target)
        raw = load_yaml_config(paths[0])
        typed = RecipeConfig(raw)
        _ = (typed.step_scheduler, typed.lr_scheduler, typed.loss_fn, typed.checkpoint, typed.optimizer)
        if raw.get("peft") is not None:
            peft = raw.peft.instantiate()
            ModuleMatcher(peft.target_modules, peft.exclude_modules, peft.match_all_linear)
        distributed.init_process_group("fake", rank=0, world_size=gpus, store=FakeStore())
        try:
            mesh = create_distributed_setup_from_config(raw, gpus).mesh_context
            each = raw.get("step_scheduler.local_batch_size", 1)
            steps = typed.step_scheduler.build(_Rows(), mesh.dp_size or gpus, each)
            typed.lr_scheduler.build(typed.optimizer.build(nn.Linear(2, 2)), steps)
        finally:
            distributed.destroy_process_group()

    return judge


class _Rows:
    """A loader of a thousand batches."""

    def __len__(self) -> int:
        return 1000


def nanotron() -> Callable[[list[str], int], None]:
    """Its loader; what it imports for GPUs alone is an empty module."""
    absent("flash_attn", "triton", "torchtyping", "grouped_gemm")
    from nanotron.config import get_config_from_file

    def judge(paths: list[str], gpus: int) -> None:
        get_config_from_file(paths[0])

    return judge


def neox() -> Callable[[list[str], int], None]:
    """NeoXArgs, told the number of GPUs as its launcher would, and that flash-attn is the one it pins."""
    without_flash_attention()
    from megatron.neox_arguments import NeoXArgs

    def judge(paths: list[str], gpus: int) -> None:
        NeoXArgs.from_ymls(paths, overwrite_values={"global_num_gpus": gpus})

    return judge


def without_flash_attention() -> None:
    """Let NeoX find the flash-attn that it pins."""
    from importlib import metadata

    absent("flash_attn", "flash_attn_2_cuda", "flash_attn_cuda")
    real = metadata.version

    def version(distribution_name: str) -> str:
        return "2.6.3" if distribution_name == "flash-attn" else real(distribution_name)

    metadata.version = version


class _Nothing:
    """What a missing package's name is: a class, a type with parameters, or a decorator that does nothing."""

    def __new__(cls, *args: Any, **_: Any) -> Any:
        return args[0] if args and callable(args[0]) else super().__new__(cls)

    def __class_getitem__(cls, _: Any) -> type:
        return cls

    def __call__(self, what: Any = None, *_: Any, **__: Any) -> Any:
        return what


class _Absent(types.ModuleType):
    """A module in which every name is nothing."""

    __version__ = "3.0.0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (_Nothing,), {})


def absent(*names: str) -> None:
    """Let these packages be found, with nothing in them."""

    class Finder:
        def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
            if name.partition(".")[0] in names:
                return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
            return None

        def create_module(self, spec: Any) -> types.ModuleType:
            return _Absent(spec.name)

        def exec_module(self, module: types.ModuleType) -> None:
            return None

    sys.meta_path.insert(0, Finder())


JUDGES = {"automodel": automodel, "nanotron": nanotron, "neox": neox}

if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    with contextlib.redirect_stdout(sys.stderr):  # NeoX and Automodel print beside their errors
        found = verdicts(sys.argv[1])
    print(json.dumps(found, indent=1))
