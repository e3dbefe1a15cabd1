"""The trainer's own validator, run in the run's environment before the nodes with GPUs are asked for.

Our own checks know the keys of one revision. This knows those of the revision that will train, at the price
of a short job: importing such a trainer takes half a minute.
"""

from __future__ import annotations

from collections.abc import Mapping

from hpctrain.plugin import Cmd, EnvVar, File, Join, Layer, Line, Need, Step, Var, Word
from hpctrain_plugins.trainers.external import runs

STEP = "validate"
_PROGRAM = "validate.py"
_SOURCES = {
    "nanotron": """\
import sys

from nanotron.config import get_config_from_file

get_config_from_file(sys.argv[1])
""",
    "neox": """\
import os
import sys

sys.path.insert(0, os.getcwd())

from megatron.neox_arguments import NeoXArgs

NeoXArgs.from_ymls([sys.argv[1]], overwrite_values={"global_num_gpus": int(sys.argv[2])})
""",
    "automodel": """\
import sys

from nemo_automodel.components._peft.module_matcher import ModuleMatcher
from nemo_automodel.components.config.loader import load_yaml_config
from nemo_automodel.recipes._typed_config import RecipeConfig

raw = load_yaml_config(sys.argv[1])
typed = RecipeConfig(raw)
for section in ("step_scheduler", "lr_scheduler", "loss_fn", "checkpoint", "optimizer"):
    getattr(typed, section)
if raw.get("peft") is not None:
    peft = raw.peft.instantiate()
    ModuleMatcher(peft.target_modules, peft.exclude_modules, peft.match_all_linear)
""",
}


def steps(
    trainer: str, file: File, gpus: int, assets: Mapping[str, Word], env: tuple[EnvVar, ...] = ()
) -> tuple[Step, ...]:
    """One step that ends badly when the trainer's own code refuses the file."""
    folder = Join(Var("HPC_RUN"), f"/steps/{STEP}/")
    check = Cmd.of("python", Join(folder, _PROGRAM), Join(folder, file.path), str(gpus))
    entered: tuple[Line, ...] = runs.entered(assets)
    return (
        Step(
            name=STEP,
            commands=(*entered, check),
            needs=frozenset({Need.TARGET}),
            inside=True,
            layer=Layer(env=env, files=(file, File(path=_PROGRAM, body=(_SOURCES[trainer],)))),
        ),
    )
