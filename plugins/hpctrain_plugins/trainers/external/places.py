"""Places of the run inside a configuration, in the command trainer's words: `{assets.NAME}` …"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from hpctrain.plugin import RunSpec
from hpctrain_plugins.trainers.external.config import Config, Fault
from hpctrain_plugins.trainers.yaml_file import Path

CHECKPOINTS = "{checkpoints}"
"""The run's own folder: a run that reads another's would go on with it in silence."""

_ASSET = re.compile(r"\{assets\.([^{}]*)\}")


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value that is no table and no list, with its path."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from leaves(inner, (*path, number))
    else:
        yield path, value


def is_absolute(text: str) -> bool:
    """Whether a path means the same wherever the trainer is started."""
    return text.startswith(("/", "{assets.", "{checkpoints}", "{checkpoints.", "{run}")) or "://" in text


def _is_relative(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and not is_absolute(value)


def asset_faults(config: Config, run: RunSpec) -> Iterator[Fault]:
    """Places that name no asset, and places whose braces YAML took for a table."""
    for path, value in leaves(config.data):
        if value is None and path and re.fullmatch(r"assets\.[\w-]+|checkpoints|run", str(path[-1])):
            braced = "{" + str(path[-1]) + "}"
            yield Fault(
                code="yaml-trap",
                message=f"{braced} is a table: an unquoted brace starts one in YAML",
                path=path,
                hint=f'"{braced}"',
            )
        for name in _ASSET.findall(value) if isinstance(value, str) else ():
            if name not in run.assets:
                from difflib import get_close_matches

                near = get_close_matches(name, run.assets, 1)
                hint = f"{{assets.{near[0]}}}" if near else f'[assets]\n{name} = {{ hub = "…" }}'
                yield Fault(code="unknown-asset", message=f"there is no asset {name}", path=path, hint=hint)


def relative_faults(config: Config, keys: Mapping[Path, str], *, fatal: bool) -> Iterator[Fault]:
    """Paths that would be looked up in whatever folder the trainer is started in, one for each key."""
    for key, hint in keys.items():
        relative = [(path, value) for path, value in leaves(config.get(*key), key) if _is_relative(value)]
        for path, value in relative[:1]:
            yield Fault(
                code="trainer-path",
                message=f"{key[-1]} is {value}, relative to the folder in which the trainer starts",
                path=path,
                hint=f'{key[-1]}: "{hint}"',
                fatal=fatal,
            )


def hub_faults(config: Config, keys: Collection[str]) -> Iterator[Fault]:
    """Models and data by a hub name: where the ranks load them there is no network."""
    for path, value in leaves(config.data):
        name = next((part for part in reversed(path) if isinstance(part, str)), "")
        if name in keys and _is_relative(value):
            kind = next((k for k in ("model", "tokenizer") if k in name), "dataset")
            yield Fault(
                code="trainer-path",
                message=f"{name} is {value}, which would be looked up on the hub when the ranks start",
                path=path,
                hint=f'{name}: "{{assets.{kind}}}"      and  [assets]\n{kind} = {{ hub = "{_hub(value)}" }}',
            )


def _hub(name: str) -> str:
    """The hub's present name of a dataset or tokenizer from before names had owners."""
    return {"wikitext": "Salesforce/wikitext", "gpt2": "openai-community/gpt2"}.get(name, name)


def shared_folder(config: Config, path: Path) -> Iterator[Fault]:
    """A checkpoint folder that every run of this configuration would use."""
    folder = config.text(*path)
    if folder.startswith("/"):
        yield Fault(
            code="shared-checkpoints",
            message=f"every run of this file would write to {folder}",
            path=path,
            hint=f'{path[-1]}: "{CHECKPOINTS}"',
            notes=("a second run would go on from the first one's state, or stop at its checkpoints",),
        )
