"""A cluster's facts from what its own programs print, given as files; each value says where it was read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from hpctrain.cli.init import machine
from hpctrain.errors import ConfigError
from hpctrain.hooks import load as loading
from hpctrain.hooks.scan import names
from hpctrain.model.names import is_name
from hpctrain.model.reading import Reading

MOST = 8 * 1024**2
"""Bytes of an output: one line for each node of the largest machines is less."""
READ, GUESS = "outputs", "guess"
HEAD = """\
# NAME: what is marked "read in" is what the machine itself printed. All else is a guess of hpctrain's:
# replace it by what your site's pages say, name the page in a [[source]] with the day on which you read
# it, and delete what you do not know.
"""
ROLES = ("home", "state", "env", "images", "assets", "data", "checkpoints", "runs")
GUESSES: Mapping[str, Mapping[str, Any]] = {
    "hardware": {"gpu": "none", "gpu_kind": "cpu"},
    "network": {"fabric": "tcp"},
    "launch": {"ranks": "per_gpu"},
    "policy": {"poll_seconds": 30, "account": "optional"},
    "defaults.environment": {"use": "venv", "python": "/usr/bin/python3"},
}
NAMELESS = {"gpu": "GPU", "gpu_kind": "cuda"}
"""GPUs that were counted and not named: nvidia-smi or rocm-smi names them, on a compute node."""
PLACES = (
    {"name": "login", "here": True, "provides": ["network", "target"]},
    {"name": "compute", "provides": ["target", "gpu"]},
)


@frozen(kw_only=True)
class Outputs:
    """The files, and what was read in them; `unread` are those that nobody knows."""

    scheduler: str
    readings: tuple[Reading, ...]
    modules: Mapping[str, list[str]]
    unread: tuple[str, ...]


def read(paths: Iterable[Path]) -> Outputs:
    """What these files, or those in these folders, say; ConfigError where no scheduler's plugin reads any."""
    outputs = {file.name: _text(file) for path in paths for file in _files(path)}
    scheduler, readings = _of_scheduler(outputs)
    if not scheduler:
        listed = ", ".join(sorted(outputs)) or "no file"
        raise ConfigError.of(
            "no-outputs",
            f"no installed scheduler's plugin reads any of these outputs: {listed}",
            hint="hpctrain help no-outputs",
        )
    readings += tuple(machine.readings(outputs))
    modules = machine.modules(outputs)
    files = {reading.file for reading in readings} | set(modules)
    return Outputs(
        scheduler=scheduler, readings=readings, modules=modules, unread=tuple(sorted(set(outputs) - files))
    )


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise ConfigError.of("no-file", f"{path} does not exist", where="--from")
    return sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]


def _text(file: Path) -> str:
    with file.open("rb") as stream:
        return stream.read(MOST).decode("utf-8", "replace")


def _of_scheduler(outputs: Mapping[str, str]) -> tuple[str, tuple[Reading, ...]]:
    """The scheduler whose plugin reads most of the outputs, and what it read."""
    best: tuple[str, tuple[Reading, ...]] = ("", ())
    for name in names("schedulers"):
        module = loading.load(loading.find("schedulers", name))
        reader = getattr(module, "printed_facts", None)
        readings = tuple(reader(outputs)) if reader else ()
        if len(readings) > len(best[1]):
            best = (name, readings)
    return best


def cluster_toml(name: str, outputs: Outputs) -> str:
    """The text of cluster.toml."""
    readings = list(_first_of_each(outputs.readings))
    top = {"name": name, "title": name, "scheduler": outputs.scheduler, "arch": "x86_64", "detect": []}
    parts = [
        HEAD.replace("NAME", name) + "\n".join(_lines(top, [r for r in readings if not r.table])),
        *_sources(readings),
        _guessed("hardware", _of(readings, "hardware")),
        *(_table("[[place]]", place, []) for place in PLACES),
        *_rows(readings, "queue"),
        *(_table(f"[storage.{role}]", {"path": _path(role), **_shared(role)}, []) for role in ROLES),
        *_modules(outputs.modules),
        *(_guessed(table, _of(readings, table)) for table in GUESSES if table != "hardware"),
        *_rows(readings, "verify", sourced=False),
    ]
    return "\n\n".join(parts) + "\n"


def _first_of_each(readings: Iterable[Reading]) -> Iterator[Reading]:
    """The first reading of each key; one of another value is told in its mark."""
    first: dict[tuple[str, str, str], Reading] = {}
    for reading in readings:
        place = (reading.table, reading.row, reading.key)
        if place not in first:
            first[place] = reading
        elif (earlier := first[place]).value != reading.value:
            first[place] = evolve(earlier, file=f"{earlier.file}; {reading.file} says {_toml(reading.value)}")
    yield from first.values()


def _of(readings: Iterable[Reading], table: str, row: str = "") -> list[Reading]:
    return [reading for reading in readings if (reading.table, reading.row) == (table, row)]


def _sources(readings: list[Reading]) -> Iterator[str]:
    today = date.today().isoformat()
    files = ", ".join(sorted({_plain(reading.file.partition(";")[0]) for reading in readings}))
    rows = (
        (READ, f"what the machine printed: {files}", "the machine itself", "measured"),
        (GUESS, "hpctrain's guesses", "nobody has looked it up", "inferred"),
    )
    for ident, title, no_url, sure in rows:
        keys = {"id": ident, "title": title, "no_url": no_url, "checked": today, "sure": sure}
        yield _table("[[source]]", keys, [], sourced=False)


def _rows(readings: list[Reading], table: str, *, sourced: bool = True) -> Iterator[str]:
    for row in dict.fromkeys(reading.row for reading in readings if reading.table == table):
        if sourced and not is_name(row):
            continue  # nobody could write it in a run file
        key = {"name": row} if sourced else {"fact": row}
        yield _table(f"[[{table}]]", key, _of(readings, table, row), sourced=sourced)


def _table(head: str, keys: Mapping[str, Any], readings: list[Reading], *, sourced: bool = True) -> str:
    source = {"source": READ if readings else GUESS} if sourced else {}
    return "\n".join([head, *_lines({**keys, **source}, readings)])


def _lines(keys: Mapping[str, Any], readings: list[Reading]) -> Iterator[str]:
    """What nothing read replaces, then what was read."""
    replaced = {reading.key for reading in readings}
    yield from (f"{key} = {_toml(value)}" for key, value in keys.items() if key not in replaced)
    yield from (f"{r.key} = {_toml(r.value)}  # read in {_plain(r.file)}" for r in readings)


def _guessed(table: str, readings: list[Reading]) -> str:
    """A table whose guesses say that they are some where other values of it were read."""
    guesses = {**GUESSES[table], **(NAMELESS if table == "hardware" and _have_gpus(readings) else {})}
    text = _table(f"[{table}]", guesses, readings, sourced="." not in table)
    if not readings:
        return text
    guess = re.compile(rf"^(?:{'|'.join(guesses)}) = [^#\n]*$", re.MULTILINE)
    return guess.sub(lambda match: f"{match[0]}  # a guess", text)


def _have_gpus(readings: list[Reading]) -> bool:
    return any(reading.key == "gpus_per_node" for reading in readings)


def _modules(files: Mapping[str, list[str]]) -> Iterator[str]:
    """Which of the modules runs need no output tells: they stand there to be chosen from."""
    for file, listed in files.items():
        lines = ["# [modules]: which of these a run needs, no output tells", f"# read in {_plain(file)}:"]
        yield "\n".join([*lines, *(f"#   {_plain(name)}" for name in listed)])


def _path(role: str) -> str:
    if role == "home":
        return "{home}"
    return "{home}/.local/state/hpctrain" if role == "state" else f"{{home}}/hpctrain/{role}"


def _shared(role: str) -> dict[str, str]:
    return {"note": "a guess: your site has larger folders for this"} if role not in ("home", "state") else {}


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_toml(inner)}' for key, inner in value.items())} }}"
    return json.dumps(value) if isinstance(value, (str, int, float)) else json.dumps(str(value))


def _plain(text: str) -> str:
    """One line of a comment, whatever is in it."""
    return re.sub(r"[^ -~]", "?", text)
