"""`convert --job`: the same command line, as the one step of a run that the cluster's scheduler starts."""

from __future__ import annotations

import platform
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpctrain.cli.doing import Doing
from hpctrain.cli.out import Out
from hpctrain.cli.submit import report
from hpctrain.defaults.names import NATIVE
from hpctrain.errors import ConfigError
from hpctrain.hooks.marker import hookimpl
from hpctrain.model.run import Asset
from hpctrain.model.step import Launch, Need, Step
from hpctrain.model.words import Cmd, Loc
from hpctrain.render.shell import plain
from hpctrain.run import start
from hpctrain.session import Session

STEP = "convert"
_MINUTES = 60
_RUN = """\
# Written by `hpctrain convert --job`.
name = "convert"
[environment]
use = ""
[train]
use = ""
[assets.convert]
command = ["hpctrain", "convert"]
"""
_NAMES = {"source_format": "--from"}


def submit(
    out: Out, source: Path, target: str, place: Path, options: Mapping[str, Any], on: str | None
) -> None:
    """Submit it and say which run it is; the job checks everything once more when it starts."""
    program = (sys.executable, "-m", "hpctrain", "convert", str(source.absolute()))
    argv = (*program, "--to", target, "--out", str(place.absolute()), *words(options))
    with tempfile.TemporaryDirectory() as folder:
        session = opened(Path(folder), argv, int(options.get("threads", 1)), on)
        _same_kind(session)
        tools = start.tools_for(session)
        start.judge(session, tools)  # what it warns of is pins, and nothing here moves
        with Doing(out, 1) as doing:
            run, outcome = start.submit(session, tools, doing.tell)
    report(out, run, outcome)


def opened(folder: Path, argv: tuple[str, ...], threads: int, on: str | None) -> Session:
    """A run whose only step starts `argv`; its file is written to `folder`."""
    file = folder / "convert.toml"
    file.write_text(_RUN, encoding="utf-8")
    return Session(file, on=on, extra=(_Conversion(argv, threads),))


def among_checkpoints(name: str, on: str | None) -> Path:
    """A folder under the role `checkpoints` of this computer's cluster, where its trainers look."""
    with tempfile.TemporaryDirectory() as folder:
        return Path(plain(Loc("checkpoints", name), opened(Path(folder), (), 1, on).binding))


def words(options: Mapping[str, Any]) -> list[str]:
    """The options as a command line gives them, paths as seen from anywhere."""
    found: list[str] = []
    for name, value in options.items():
        flag = _NAMES.get(name, "--" + name.replace("_", "-"))
        if value is True:
            found.append(flag)
        elif value is False and name == "rope_interleaved":
            found.append("--no-rope-interleaved")
        elif value not in (False, ""):
            found += [flag, str(value.absolute() if isinstance(value, Path) else value)]
    return found


def _same_kind(session: Session) -> None:
    """The job starts this Python, so it must be one for the nodes that it runs on."""
    here, there = platform.machine(), session.cluster.arch
    if there not in (here, NATIVE):
        raise ConfigError.of(
            "architecture",
            f"this Python is for {here}, the nodes of {session.cluster.name} are {there}",
            hint="the same command without --job: a conversion needs no GPU",
        )


class _Conversion:
    """The hooks of this one run."""

    def __init__(self, argv: tuple[str, ...], threads: int) -> None:
        self._argv, self._threads = argv, threads

    @hookimpl
    def prepare_data(self, name: str, asset: Asset) -> list[Step]:
        """One step in the scheduler's hands."""
        return [
            Step(
                name=STEP,
                commands=(Cmd(self._argv),),
                # No GPU is used; but only a place that trains is surely not the login node.
                needs=frozenset({Need.TARGET, Need.GPU}),
                launch=Launch(cpus_per_rank=self._threads),
                minutes=_MINUTES,
            )
        ]
