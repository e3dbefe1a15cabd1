"""Several NeoX files as one configuration, merged as NeoX means it and not as it does it.

NeoX refuses a key that stands in two files, but compares before it makes `train_iters` of `train-iters`:
two spellings of one key pass, and the later file wins in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from hpctrain_plugins.trainers.external.config import Config, Fault, merged
from hpctrain_plugins.trainers.yaml_file import Path, Yaml

NAME = "neox"


def config_of(files: Iterable[Yaml], settings: Mapping[str, Any]) -> Config:
    """One configuration with underscores in every top-level key."""
    return merged(NAME, [underscored(file) for file in files], {_name(k): v for k, v in settings.items()})


def underscored(file: Yaml) -> Yaml:
    """The file with NeoX's own spelling of its keys."""
    return attrs.evolve(
        file,
        data={_name(key): value for key, value in file.data.items()},
        keys={_path(path): span for path, span in file.keys.items()},
        values={_path(path): span for path, span in file.values.items()},
        traps={_path(path): trap for path, trap in file.traps.items()},
    )


def faults(files: tuple[Yaml, ...]) -> Iterator[Fault]:
    """Keys that two files say, and names that NeoX cannot keep apart or does not find."""
    first_uses: dict[str, tuple[Yaml, str]] = {}
    names: dict[str, Yaml] = {}
    for file in files:
        for key in map(str, file.data):
            if _name(key) in first_uses:
                yield _twice(key, *first_uses[_name(key)], file)
            first_uses[_name(key)] = (file, key)
        base = file.file.rpartition("/")[2]
        if base in names:
            message = f"two files are called {base}; NeoX keeps a copy of each in every checkpoint"
            yield Fault(code="trainer-conflict", message=message)
        names[base] = file
        if not base.endswith((".yml", ".json")):
            message = f"NeoX would look for {base}.yml: it knows only .yml and .json"
            yield Fault(code="trainer-path", message=message, hint=f"{base.partition('.')[0]}.yml")


def _twice(key: str, first: Yaml, spelled: str, second: Yaml) -> Fault:
    span = first.keys[(spelled,)]
    spelling = f" as {spelled}" if spelled != key else ""
    silent = "NeoX does not see it and takes the second" if spelled != key else "NeoX refuses it"
    return Fault(
        code="trainer-conflict",
        message=f"{key} already appears{spelling} in {span.file}:{span.line}",
        path=(_name(key),),
        notes=(f"first {first.data[spelled]}, now {second.data[key]}; {silent}",),
    )


def _name(key: object) -> str:
    return str(key).replace("-", "_")


def _path(path: Path) -> Path:
    return (_name(path[0]), *path[1:]) if path else path
