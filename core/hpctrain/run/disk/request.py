"""What a run was asked to do and with what, after every layer and `--set`, as its directory keeps it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from hpctrain.errors import IntegrityError
from hpctrain.model.layer import How
from hpctrain.plan.chain import TRAIN
from hpctrain.plan.decode import word
from hpctrain.plan.words import word_text
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.disk.kept_plan import UNREADABLE
from hpctrain_job.files import documents

Rows = list[tuple[str, list[str]]]
WORDS = ("var", "loc", "secret", "raw", "join")
_TOLD_ELSEWHERE = ("name", "cluster", "texts")


@frozen(kw_only=True)
class Request:
    """The settings of one run by their key paths, and the versions of all that it used."""

    settings: Mapping[str, str]
    """`train.trl.learning_rate` -> `0.0002`; a key without a value is left out."""
    versions: Mapping[str, str]
    """Names that were pinned, plugins and the Python of the control plane -> which."""
    variables: tuple[tuple[str, str, str, str], ...] = ()
    """Of the training: name, value, who set it, and why."""
    digest: str = ""
    """The plan's."""
    created: str = ""
    """When; RFC 3339."""

    @classmethod
    def of(cls, run: RunDirectory) -> Request:
        """The request of this run; IntegrityError where its plan cannot be read."""
        try:
            plan = documents.read(run.plan)
            settings = {
                key: value
                for name, table in plan["run"].items()
                if name not in _TOLD_ELSEWHERE
                for key, value in _leaves(name, _as_written(table))
            }
            pins = {f"{pin['name']} ({pin['kind']})": str(pin["value"]) for pin in plan["pins"]}
            variables = tuple(_variables(plan["steps"]))
            digest = str(plan["digest"])
        except (*UNREADABLE, KeyError) as error:
            raise IntegrityError.of("plan-file", f"{run.plan} cannot be read: {error}") from error
        created = next((entry for entry in run.record.read() if entry["event"] == "created"), {})
        versions = {**_used(created), **pins}
        return cls(
            settings=settings,
            versions=versions,
            variables=variables,
            digest=digest,
            created=str(created.get("time", "")),
        )


def differences(tables: Sequence[Mapping[str, str]]) -> tuple[Rows, list[str]]:
    """The rows in which they differ, with one cell for each, and the keys in which they agree."""
    keys = list(dict.fromkeys(key for table in tables for key in table))
    rows = [(key, [table.get(key, "-") for table in tables]) for key in keys]
    different = [(key, cells) for key, cells in rows if len(set(cells)) > 1]
    return different, [key for key, cells in rows if len(set(cells)) == 1]


def _as_written(table: Any) -> Any:
    """A table with its options under the name of the technology, where the run file has them."""
    if not isinstance(table, dict) or not isinstance(table.get("options"), dict) or not table.get("use"):
        return table
    return {(table["use"] if key == "options" else key): value for key, value in table.items()}


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every value below, with its path; what is empty says nothing."""
    if isinstance(value, str) or _is_word(value):
        if value:
            yield path, word_text(word(value))
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}", inner)
    elif value not in (None, []):
        yield path, json.dumps(value, ensure_ascii=False)


def _is_word(value: Any) -> bool:
    """A word that is bound late: a path below a role, the name of a secret."""
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in WORDS


def _variables(steps: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, str, str]]:
    for step in steps:
        if step["step"]["name"] == TRAIN:
            for variable in step["around"]["env"]:
                value = variable["value"]
                text = "(not set)" if variable["how"] == How.UNSET.value else word_text(word(value))
                yield str(variable["name"]), str(text), str(variable["source"]), str(variable["why"])


def _used(created: Mapping[str, Any]) -> dict[str, str]:
    plugins = created.get("plugins")
    used = {}
    for plugin in plugins if isinstance(plugins, list) else ():
        name, _, version = str(plugin).partition(" (")
        used[f"plugin {name}"] = version.removesuffix(")")
    return used
