"""DeepSpeed ZeRO checkpoints of any stage: the full-precision weights out of the optimizer.

`convert --ranks` writes them too, with all that the optimizer holds.
"""

from __future__ import annotations

from pathlib import Path

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints.containers import torchzip
from hpctrain_plugins.checkpoints.formats import zero_files
from hpctrain_plugins.checkpoints.formats.neox import shards as neox_shards
from hpctrain_plugins.checkpoints.formats.steps import leads_to, step_folder
from hpctrain_plugins.checkpoints.formats.zero import optimizer, ranks, weights
from hpctrain_plugins.checkpoints.formats.zero.optimizer import State
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.output import Output
from hpctrain_plugins.checkpoints.tensors import Model

HPCTRAIN_API = 1
CHOICES = ()
OPTIMIZER = True


def _holds(path: Path) -> bool:
    if not path.is_dir() or neox_shards.holds(path):
        return False
    return bool(zero_files.optim_files(path)) or zero_files.is_unpartitioned(path)


def detect(path: Path) -> bool:
    """Optimizer files of ranks lie in the folder or one step below."""
    return leads_to(path, _holds)


def read(path: Path, options: ConvertOptions) -> Model:
    """The model of one step; an adapter that was trained alone is merged into its base."""
    step = step_folder(path, options.tag, "latest", _holds)
    if zero_files.is_unpartitioned(step):
        model = _unpartitioned(step, options)
    else:
        partitions = zero_files.read(step)
        if len(partitions) > 1:
            message = f"{step} was trained with {len(partitions)} tensor-parallel ranks"
            hint = "--from neox --masters"
            raise ConfigError.of("checkpoint-unsupported", message, where=str(step), hint=hint)
        if options.optimizer:
            return optimizer.of_partition(path, partitions[0])
        model = weights.of_step(partitions[0])
        model.decisions["data_parallel_ranks"] = len(partitions[0].optim)
    return weights.finished(model, path, step, options)


def plan(model: Model, options: ConvertOptions) -> Output:
    """The same training for `--ranks N`."""
    assert isinstance(model, State)  # request.check has seen to it
    assert options.ranks is not None
    return ranks.plan(model, options.ranks)


def _unpartitioned(step: Path, options: ConvertOptions) -> Model:
    """Without ZeRO the weights lie in one file, as the model itself holds them."""
    if options.optimizer:
        message = f"{step} was written without ZeRO (stage 0), and goes on on any number of ranks"
        raise ConfigError.of("usage", message, where=str(step), hint="resume from it as it is")
    archive = torchzip.open_archive(step / zero_files.WHOLE_MODEL)
    module = archive.value.get("module") if isinstance(archive.value, dict) else None
    if not isinstance(module, dict):
        message = f"{archive.path} holds no weights of a model"
        raise IntegrityError.of("checkpoint-damaged", message, where=str(archive.path))
    if archive.value.get("param_shapes"):
        message = f"{step} was written with ZeRO, and the files of its optimizer are missing"
        raise IntegrityError.of("checkpoint-incomplete", message, where=str(step))
    model = Model(archive.tensors(module), crcs={archive.path: archive.crcs})
    model.decisions = {"zero_stage": 0}
    return model
