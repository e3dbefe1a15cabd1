"""torch's distributed checkpoints (DCP): a pickled directory, and every box a small torch file."""

from __future__ import annotations

from pathlib import Path

from hpctrain.plugin import ConfigError, IntegrityError
from hpctrain_plugins.checkpoints.containers import distcp
from hpctrain_plugins.checkpoints.containers.distcp import Directory
from hpctrain_plugins.checkpoints.foreign import megatron_backend
from hpctrain_plugins.checkpoints.formats import roots
from hpctrain_plugins.checkpoints.formats.grids import assemble, boxes_of, describe
from hpctrain_plugins.checkpoints.formats.steps import leads_to, step_folder, step_number
from hpctrain_plugins.checkpoints.options import ConvertOptions
from hpctrain_plugins.checkpoints.tensors import Model

HPCTRAIN_API = 1

_WRAPPERS = ("_orig_mod.", "_checkpoint_wrapped_module.", "_fsdp_wrapped_module.")


def _holds(path: Path) -> bool:
    return (path / distcp.DIRECTORY).is_file() and any(path.glob("*.distcp")) and not megatron_backend(path)


def detect(path: Path) -> bool:
    """A directory file and data files lie in the folder or one step below."""
    return leads_to(path, _holds)


def read(path: Path, options: ConvertOptions) -> Model:
    """The weights among everything that was saved."""
    step = step_folder(path, options.tag, "latest", _holds)
    directory = distcp.read(step)
    names = _weights(directory)
    model = Model({}, step=step_number(step.name))
    for saved, name in names.items():
        model.tensors[name] = assemble(name, boxes_of(directory, saved, model), directory.shapes[saved])
    ignored_count = directory.entries - len(names)
    if ignored_count:
        model.ignored["everything else"] = f"{ignored_count} entries that are not weights"
    describe(model, step, options)
    return model


def _weights(directory: Directory) -> dict[str, str]:
    """Saved name -> the model's own name, for what is a weight."""
    paths = {saved: _unwrapped(directory.paths.get(saved) or (saved,)) for saved in directory.shapes}
    out = roots.weights(paths)
    for saved, name in out.items():
        if name.endswith("flat_param"):
            message = f"{saved} is a flattened parameter, whose parts no file names"
            raise ConfigError.of(
                "checkpoint-unsupported",
                message,
                where=saved,
                hint="fsdp_state_dict_type: SHARDED_STATE_DICT",
            )
    if len(set(out.values())) != len(out):
        first = next(iter(out))
        raise IntegrityError.of("checkpoint-stale", "two saved tensors have the same name", where=first)
    return out


def _unwrapped(path: tuple[str, ...]) -> tuple[str, ...]:
    """Names without what torch's wrappers put into them."""
    name = path[-1]
    for wrapper in _WRAPPERS:
        name = name.replace(wrapper, "")
    return (*path[:-1], name)
