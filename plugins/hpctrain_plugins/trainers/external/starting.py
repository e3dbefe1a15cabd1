"""A trainer's own keys of where training starts, understood as `[checkpoint] start`.

Two configurations come of them: one for the first attempt, with what the user wrote, and one that goes on
from the run's own checkpoints with their optimizer and step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import field, frozen

from hpctrain.plugin import Layer, Layout, Problem, RunSpec, Word
from hpctrain_plugins.trainers import starts
from hpctrain_plugins.trainers.external.config import Config, Fault, over
from hpctrain_plugins.trainers.external.places import CHECKPOINTS
from hpctrain_plugins.trainers.external.resolved import yaml_file
from hpctrain_plugins.trainers.yaml_file import Path, dotted


@frozen(kw_only=True)
class StartKeys:
    """Where a trainer reads what to start from."""

    load: Path
    """The key that names the checkpoint or the folder of several."""
    save: Path
    """Where it writes; `load` with the value of this means the run's own folder."""
    first_only: Mapping[Path, Any] = field(factory=dict)
    """How it reads the start, each with its default; of the run's own checkpoints it would drop a part."""
    own_words: tuple[str, ...] = ()
    """Values of `load` that mean the newest checkpoint of the run."""
    resumes_alone: bool = False
    """Without `load` it goes on from its own folder."""


def of_config(config: Config, keys: StartKeys) -> str:
    """The start that the trainer's own key names; nothing where it means the run's own folder."""
    value = config.text(*keys.load)
    is_own = value in ("", CHECKPOINTS, *keys.own_words) or value == config.text(*keys.save)
    return "" if is_own else value.rstrip("/") or "/"


def text_of(run: RunSpec, config: Config, keys: StartKeys) -> str:
    """Where the first attempt starts, by the run file or by the trainer's own key."""
    return starts.of_run(run).rstrip("/") or of_config(config, keys)


def problems(run: RunSpec, config: Config, keys: StartKeys) -> Iterator[Problem]:
    """Starts that contradict each other, or that are no place on the cluster."""
    yield from starts.problems(run)
    of_file = of_config(config, keys)
    if not of_file:
        return
    text, place = starts.of_run(run).rstrip("/"), config.place(keys.load)
    name = keys.load[-1]
    if text and text != of_file:
        where = starts.key_of(run)
        yield Problem(
            code="start-conflict",
            message=f"{where} is {text}, and {name} is {of_file}: the run can start at one of them only",
            where=where,
            hint=f"remove {name} at {place}",
            notes=(f"{name}: {of_file} stands at {place}",),
        )
    elif not text and run.checkpoint.resume == starts.NEVER:
        yield Problem(
            code="start-conflict",
            message=f'{name} is {of_file} at {place}, and resume = "never" contradicts it',
            where="checkpoint.resume",
            hint='resume = "auto"      (or no such line)',
            notes=(starts.RULE,),
        )
    elif not text and not starts.is_place(of_file):
        fault = starts.misplaced(of_file, dotted(keys.load))
        yield config.problem(
            Fault(
                code=fault.code,
                message=f"{name} is {of_file}, which is no place on the cluster to start from",
                path=keys.load,
                hint=fault.hint.replace("start =", f"{name}:"),
                notes=fault.notes,
            )
        )


def idle_faults(run: RunSpec, config: Config, keys: StartKeys) -> Iterator[Fault]:
    """Keys that say how to read a start where nothing names one."""
    if text_of(run, config, keys):
        return
    for path, default in keys.first_only.items():
        value = config.get(*path)
        if value is not None and value != default:
            yield Fault(
                code="start-conflict",
                message=f"{path[-1]} is {value} and has no effect: it is about a start, and there is none",
                path=path,
                hint='[checkpoint]\nstart = "/…"',
                notes=("the run's own checkpoints are read whole, with optimizer and step",),
                fatal=False,
            )


def configurations(
    name: str,
    values: Mapping[str, Any],
    *,
    keys: StartKeys,
    layout: Layout,
    start: Word,
    first: Mapping[str, Any] | None = None,
    needs: tuple[str, ...] = (),
) -> Layer:
    """The file `name` that goes on and, where there is a start, one for the first attempt and what chooses.

    `values` have the run's own folder; `first` is what the trainer needs besides the start to read it.
    """
    file = yaml_file(name, without(values, (*keys.first_only, *((keys.load,) if keys.resumes_alone else ()))))
    if start == "":
        return Layer(files=(file,))
    initial = yaml_file(f"first-{name}", over(over(values, _nested(keys.load, start)), first or {}))
    chosen = starts.layer(start, layout, needs=needs, config=(name, initial.path))
    return Layer(files=(file, initial), job=chosen.job, binds=chosen.binds)


def without(values: Mapping[str, Any], paths: Iterable[Path]) -> dict[str, Any]:
    """`values` without the keys at `paths`."""
    result = {key: value for key, value in values.items() if (key,) not in paths}
    for key, value in result.items():
        inner = [path[1:] for path in paths if path[0] == key and len(path) > 1]
        if inner and isinstance(value, Mapping):
            result[key] = without(value, inner)
    return result


def _nested(path: Path, value: Any) -> dict[str, Any]:
    for part in reversed(path):
        value = {part: value}
    return dict(value)
