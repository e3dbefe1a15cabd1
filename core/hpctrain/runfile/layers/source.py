"""The layers of a run before its cluster and its plugins are known."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import attrs
from attrs import frozen

from hpctrain.errors import ConfigError, Problem
from hpctrain.model.names import is_name
from hpctrain.runfile.faults import Fault, wrong_type
from hpctrain.runfile.judging.rules import bad_name
from hpctrain.runfile.layers.layers import Tier, merge
from hpctrain.runfile.layers.sets import read_set
from hpctrain.runfile.layers.settings import Settings, read_settings
from hpctrain.runfile.reading.find import find_run
from hpctrain.runfile.reading.text import Document, read_toml

if TYPE_CHECKING:
    from hpctrain.runfile.layers.replay import Replay

T = TypeVar("T")


@frozen(kw_only=True)
class RunSource:
    """A run file with the user's other layers; `cluster` is "" until somebody says which."""

    path: Path
    base: Path
    """The folder from which the run file's relative paths count."""
    document: Document
    settings: Settings
    sets: tuple[Tier, ...] = ()
    on: str = ""
    cluster: str = ""
    replay: Replay | None = None
    """What else was asked, where the file is the record of a run."""

    def on_cluster(self, name: str) -> RunSource:
        """This run file with its layers for the cluster `name`."""
        return attrs.evolve(self, on=name, cluster=name)

    @property
    def tier(self) -> Tier:
        """The run file itself, without its overlays."""
        data = {key: value for key, value in self.document.data.items() if key not in ("on", "replay")}
        return Tier(name="run file", data=data, document=self.document)

    def tiers(self) -> tuple[Tier, ...]:
        """The user's layers, lowest first: settings, run file, its `[on.X]`, `--set`, `--on`."""
        tiers = [*self.below(), self.tier]
        overlay = self.document.data.get("on", {}).get(self.cluster)
        if overlay:
            prefix = ("on", self.cluster)
            tiers.append(Tier(name=f"on.{self.cluster}", data=overlay, document=self.document, prefix=prefix))
        return (*tiers, *self.above())

    def below(self) -> tuple[Tier, ...]:
        """The layers below the run file: the settings, or what was recorded of them."""
        recorded = (self.replay.tier("settings"),) if self.replay else ()
        return (*recorded, *self.settings.run_tiers(self.cluster, personal=bool(recorded)))

    def above(self) -> tuple[Tier, ...]:
        """The layers over the run file: `--set` and `--on`, and before them what was recorded of those."""
        recorded = (self.replay.tier("set"),) if self.replay else ()
        on = Tier(name="--on", data={"cluster": self.on}, option=f"--on {self.on}")
        return (*recorded, *self.sets, *((on,) if self.on else ()))


def read_run(
    path: Path | None = None,
    *,
    on: str | None = None,
    sets: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    start: Path | None = None,
) -> RunSource:
    """Read the run file, the settings and every `--set`; ConfigError says all that is wrong.

    Structuring waits for `structure_run`: its types depend on the cluster and on the plugins.
    """
    environ = os.environ if environ is None else environ
    file, label = find_run(path, environ, start or Path.cwd())
    problems: list[Problem] = []
    document = _try_read(problems, lambda: _document(file, label))
    settings = _try_read(problems, lambda: read_settings(environ))
    tiers = [_try_read(problems, partial(read_set, text)) for text in sets]
    if document is None or settings is None or problems:
        raise ConfigError(*problems)
    path = file.absolute()
    replay = _replay(document)
    raw = RunSource(
        path=path,
        base=replay.base(path) if replay else path.parent,
        replay=replay,
        document=document,
        settings=settings,
        sets=tuple(tier for tier in tiers if tier is not None),
        on=on or "",
    )
    return attrs.evolve(raw, cluster=_cluster(raw))


def _replay(document: Document) -> Replay | None:
    if "replay" not in document.data:
        return None
    from hpctrain.runfile.layers import replay  # most run files are no records

    return replay.read(document)


def _try_read(problems: list[Problem], read: Callable[[], T]) -> T | None:
    """What `read` gives, or None with its problems kept."""
    try:
        return read()
    except ConfigError as error:
        problems += error.problems
        return None


def _document(file: Path, label: str) -> Document:
    document = read_toml(file, label)
    if not document.data:
        message = f"{label} is empty"
        raise ConfigError(Problem(code="empty-file", message=message, hint="hpctrain init run"))
    faults = tuple(_overlay_faults(document.data.get("on", {})))
    if faults:
        tier = Tier(name="run file", data=document.data, document=document)
        raise ConfigError(*merge([tier], main=tier).problems(faults))
    return document


def _overlay_faults(overlays: object) -> Iterator[Fault]:
    """`[on.X]` holds a table for each cluster."""
    if not isinstance(overlays, dict):
        yield from (f.under("on") for f in wrong_type(overlays, "a table").faults)
        return
    for name, table in overlays.items():
        if not is_name(name):
            yield bad_name(name, at_key=True).under("on")
        elif not isinstance(table, dict):
            faults = wrong_type(table, "a table").faults
            yield from (f.under(name).under("on") for f in faults)


def _cluster(raw: RunSource) -> str:
    """The cluster that the layers name, checked first: it becomes part of paths."""
    merged = merge(raw.tiers())
    name = merged.data.get("cluster", "")
    if not isinstance(name, str):
        (fault,) = wrong_type(name, "a string", "").faults
    elif name and not is_name(name):
        fault = bad_name(name)
    else:
        return name
    raise ConfigError(merged.problem(fault.under("cluster")))
