"""A trainer's configuration: its files and the run file's settings in one, each value with its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs
from attrs import frozen

from hpctrain.plugin import Problem, Span
from hpctrain_plugins.trainers.yaml_file import Path, Trap, Yaml, dotted

SETTINGS = "settings"
"""The key of `[train.NAME]` whose table lies over the files."""


@frozen(kw_only=True)
class Fault:
    """Something wrong at a path of the configuration."""

    code: str
    message: str
    path: Path = ()
    hint: str = ""
    notes: tuple[str, ...] = ()
    fatal: bool = True


@frozen(kw_only=True)
class Machine:
    """What the configuration must fit; `nodes` is 0 where nobody said."""

    gpus: int
    nodes: int = 0

    @property
    def per_node(self) -> int:
        return self.gpus // self.nodes if self.nodes else 0


@frozen(kw_only=True)
class Config:
    """The merged values. `whose` says which file has a top-level key."""

    trainer: str
    data: dict[str, Any]
    files: tuple[Yaml, ...] = ()
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    whose: Mapping[str, Yaml] = attrs.field(factory=dict)

    def get(self, *path: str | int, default: Any = None) -> Any:
        """The value at `path`, `default` where there is none or it is null."""
        value: Any = self.data
        for part in path:
            if not _has(value, part):
                return default
            value = value[part]
        return default if value is None else value

    def number(self, *path: str | int, default: int = 0) -> int:
        """A whole number; `default` where it is something else, which the check of types tells."""
        value = self.get(*path, default=default)
        return value if type(value) is int else default

    def table(self, *path: str | int) -> dict[str, Any]:
        """A table; empty where it is something else."""
        value = self.get(*path)
        return value if isinstance(value, dict) else {}

    def text(self, *path: str | int) -> str:
        """A text; empty where it is something else."""
        value = self.get(*path)
        return value if isinstance(value, str) else ""

    def traps(self) -> Iterable[tuple[Path, Trap]]:
        """Words that YAML 1.1 misreads and that no setting replaces."""
        for file in self.files:
            for path, trap in file.traps.items():
                if path and self.whose.get(str(path[0])) is file and not self._set(path):
                    yield path, trap

    def problem(self, fault: Fault) -> Problem:
        """The fault with its place: in a file, or in the run file where a setting says the value."""
        where, span = self._located(fault.path)
        return Problem(
            code=fault.code,
            message=fault.message,
            where=where,
            hint=fault.hint,
            notes=fault.notes,
            fatal=fault.fatal,
            span=span,
        )

    def place(self, path: Path) -> str:
        """Where a value stands, in words: `run.yml:28`, or its key in the run file."""
        where, span = self._located(path)
        return f"{span.file}:{span.line}" if span else where

    def _located(self, path: Path) -> tuple[str, Span | None]:
        if self._set(path) or not self.files:
            below = "".join(f".{part}" for part in path) if self._set(path) else ""
            return f"train.{self.trainer}.{SETTINGS}{below}", None
        return dotted(path), self._span(path)

    def _span(self, path: Path) -> Span | None:
        file = self.whose.get(str(path[0])) if path else None
        span = file.span(path) if file else None
        return span or Span(file=self.files[0].file, line=1)

    def _set(self, path: Path) -> bool:
        value: Any = self.settings
        for part in path:
            if not isinstance(value, Mapping) or part not in value:
                return False
            value = value[part]
        return bool(path)


def _has(value: Any, part: str | int) -> bool:
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, dict) and part in value


def merged(trainer: str, files: Iterable[Yaml], settings: Mapping[str, Any]) -> Config:
    """One configuration of all files, later over earlier, with the settings on top, table by table."""
    documents = tuple(files)
    data: dict[str, Any] = {}
    whose: dict[str, Yaml] = {}
    for file in documents:
        data.update(file.data)
        whose.update(dict.fromkeys(file.data, file))
    return Config(trainer=trainer, data=over(data, settings), files=documents, settings=settings, whose=whose)


def over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Tables merge; everything else is replaced."""
    combined = dict(below)
    for key, value in above.items():
        if isinstance(value, Mapping):
            old = combined.get(key)
            combined[key] = over(old if isinstance(old, Mapping) else {}, value)
        else:
            combined[key] = list(value) if isinstance(value, tuple) else value
    return combined
