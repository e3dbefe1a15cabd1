"""A checkpoint of ZeRO for a number of ranks, with all that its optimizer holds: `convert --ranks`.

DeepSpeed itself refuses to load one on another number than it was written on. What the ranks hold is cut
anew, and no number of it changes.
"""

from __future__ import annotations

from types import ModuleType

from hpctrain.plugin import ConfigError
from hpctrain_plugins.checkpoints.containers import torchzip_write
from hpctrain_plugins.checkpoints.formats.zero import shares, slices
from hpctrain_plugins.checkpoints.formats.zero.optimizer import State
from hpctrain_plugins.checkpoints.formats.zero_files import Partition
from hpctrain_plugins.checkpoints.output import Output


def plan(model: State, ranks: int) -> Output:
    """The files of all ranks, and what else lies in the folders."""
    output = Output(decisions={"ranks": ranks})
    stage: ModuleType = slices
    if model.source.stage == 3:
        stage = shares
        if isinstance(model.source, Partition):
            shares.check(model, len(model.source.optim))
    prefix = "bf16_" if model.bf16 else ""
    try:
        for rank in range(ranks):
            value = {**model.beside, "optimizer_state_dict": stage.optimizer_of(model, rank, ranks)}
            name = f"{model.tag}/{prefix}zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"
            output.files.append(torchzip_write.plan_file(name, value))
        output.files += stage.model_files(model, ranks)
    except TypeError as error:
        step = model.source.step
        message = f"{step} cannot be rewritten: {error}"
        raise ConfigError.of("checkpoint-unsupported", message, where=str(step)) from error
    output.copies |= model.copied_files(model.tag)
    output.texts["latest"] = model.tag.encode()
    return output
