"""`run.lock.toml`: the run file with its pins, one table per cluster; itself a run file.

The text of the run file comes first, unchanged, so that the lock alone replays the run; then a table
of pins for each cluster that was locked, with a hash of what was resolved. When the run file asks for
something else later, the pins of that cluster are stale and say so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from attrs import frozen

from hpctrain.errors import ConfigError
from hpctrain.model.run import RunSpec
from hpctrain.model.step import CONFIG, Pin
from hpctrain.plan.encode import encode

MARK = "# ---- pins, written by `hpctrain lock`; everything above is the run file ----"
REBUILD = "rebuild"
"""The kind of a pin that names no version: how often a package was asked to be built anew."""


REQUEST = "asked"
"""The key in the file under which the hash of what was resolved stands."""


@frozen(kw_only=True)
class Lock:
    """The pins of one cluster, and whether they answer what the run asks now."""

    pins: tuple[Pin, ...] = ()
    exists: bool = False
    """The file has a table for the cluster."""
    stale: bool = False
    """The run asked for something else when it was locked."""

    @property
    def answers(self) -> bool:
        """Whether the cluster is locked for what the run asks now."""
        return self.exists and not self.stale

    @property
    def valid_pins(self) -> tuple[Pin, ...]:
        """The pins to plan with: none when they were resolved for another request."""
        return () if self.stale else tuple(pin for pin in self.pins if pin.kind != CONFIG)

    @property
    def configs(self) -> dict[str, str]:
        """Asset -> the `config.json` of its model, as text."""
        return {} if self.stale else {pin.name: pin.value for pin in self.pins if pin.kind == CONFIG}


def path_of(run_file: Path) -> Path:
    """`run.toml` -> `run.lock.toml`; a lock is its own lock, whatever it is called."""
    is_lock = run_file.name.endswith(".lock.toml") or MARK in _text(run_file).splitlines()
    return run_file if is_lock else run_file.with_name(f"{run_file.stem}.lock.toml")


def _text(run_file: Path) -> str:
    try:
        return run_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):  # who reads the run file says so
        return ""


def request_hash(run: RunSpec) -> str:
    """A hash of all that pins are resolved from."""
    request = encode(
        [run.environment, run.assets, run.code, sorted(run.inputs.items())], frozenset({"stack"})
    )
    return sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:16]


def read(run_file: Path, cluster: str, run: RunSpec) -> Lock:
    """The lock of this run on this cluster."""
    table = _tables(run_file).get(cluster)
    if table is None:
        return Lock()
    try:
        pins = tuple(_pin(key, value) for key, value in table.items() if key != REQUEST)
    except ValueError as error:
        raise ConfigError.of(
            "lock-file", f"{path_of(run_file).name}: {error}", where=f"pins.{cluster}", hint="hpctrain lock"
        ) from error
    return Lock(pins=pins, exists=True, stale=table.get(REQUEST) != request_hash(run))


def text(run_file: Path, pins: Mapping[str, tuple[str, Iterable[Pin]]]) -> str:
    """The lock's text: the run file, then its pins on each cluster; clusters not in `pins` stay as they are.

    `pins` has for each cluster the hash of what was resolved, and the result.
    """
    tables = _tables(run_file)
    body = run_file.read_text(encoding="utf-8").partition(MARK)[0]
    for cluster, (request, pins_of_cluster) in pins.items():
        rows = {f"{pin.kind}:{pin.name}": pin.value for pin in pins_of_cluster}
        tables[cluster] = {REQUEST: request, **dict(sorted(rows.items()))}
    return _with_pins(body, tables)


def recorded(text: str, replay: str, run_file: Path, *, pinned: bool) -> str:
    """The lock of a run's directory: the run file, what was asked beside it, and the pins if they answer."""
    from hpctrain.runfile.layers.replay import without_table  # a plan writes no lock

    body = f"{without_table(text.partition(MARK)[0])}\n\n{replay}"
    return _with_pins(body, _tables(run_file) if pinned else {})


def _with_pins(body: str, tables: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [body.rstrip(), "", MARK]
    for cluster, table in sorted(tables.items()):
        lines += ["", f"[pins.{json.dumps(cluster)}]"]
        lines += [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def rebuilt(pins: Iterable[Pin], packages: Iterable[str]) -> tuple[Pin, ...]:
    """The pins with one rebuild more of each package, which makes another key of what it is part of."""
    result = list(pins)
    for package in packages:
        last = next((pin for pin in result if (pin.kind, pin.name) == (REBUILD, package)), None)
        count = int(last.value) if last and last.value.isdigit() else 0
        result = [pin for pin in result if pin is not last] + [Pin(package, REBUILD, str(count + 1))]
    return tuple(result)


def _tables(run_file: Path) -> dict[str, dict[str, Any]]:
    """The pins beside the run file; ConfigError where somebody else wrote them."""
    from hpctrain.runfile.reading.find import need_same_owner  # many runs have no lock
    from hpctrain.runfile.reading.text import read_toml

    path = path_of(run_file)
    if not path.is_file():
        return {}
    need_same_owner(path, run_file)
    tables = read_toml(path, path.name).data.get("pins", {})
    return {name: dict(table) for name, table in tables.items() if isinstance(table, Mapping)}


def _pin(key: str, value: Any) -> Pin:
    kind, colon, name = key.partition(":")
    if not colon or not isinstance(value, str):
        raise ValueError(f'a pin is "kind:name" = "value", not {key!r} = {value!r}')
    return Pin(name, kind, value)
