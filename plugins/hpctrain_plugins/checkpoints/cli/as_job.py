"""A command line of ours as steps of a run that the cluster's scheduler starts: `convert --job`."""

from __future__ import annotations

import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

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
from hpctrain_plugins.checkpoints.options import ConvertOptions

CONVERT = "convert"
_MINUTES = 60
_RUN = """\
# Written by `hpctrain {name} --job`.
name = "{name}"
secrets = {secrets}
[environment]
use = ""
[train]
use = ""
"""
_STEP = """\
[assets.{step}]
command = ["hpctrain", "{name}"]
"""
_NAMES = {"source_format": "--from"}


@attrs.frozen(kw_only=True)
class Where:
    """The cluster, this computer's unless named, and what its jobs are charged to."""

    on: str | None = None
    account: str | None = None


def conversion(
    source: Path, target: str, place: Path, options: Mapping[str, Any], name: str = CONVERT
) -> Step:
    """One step in the scheduler's hands; the job checks everything once more when it starts."""
    argv = (str(source.absolute()), "--to", target, "--out", str(place.absolute()), *words(options))
    return Step(
        name=name,
        commands=(Cmd((*program(), "convert", *argv)),),
        # No GPU is used; but only a place that trains is surely not the login node.
        needs=frozenset({Need.TARGET, Need.GPU}),
        launch=Launch(cpus_per_rank=ConvertOptions(threads=options.get("threads")).workers()),
        minutes=_MINUTES,
    )


def program() -> tuple[str, ...]:
    """This installation, as a step starts it."""
    return (sys.executable, "-m", "hpctrain")


def submit(
    out: Out, steps: Sequence[Step], where: Where, name: str = CONVERT, secrets: Sequence[str] = ()
) -> None:
    """Submit them as one run and say which it is."""
    with tempfile.TemporaryDirectory() as folder:
        session = opened(Path(folder), steps, where, name, secrets)
        _same_kind(session)
        tools = start.tools_for(session)
        start.judge(session, tools)  # what it warns of is pins, and nothing here moves
        with Doing(out, len(steps)) as doing:
            run, outcome = start.submit(session, tools, doing.tell)
    report(out, run, outcome)


def opened(
    folder: Path, steps: Sequence[Step], where: Where, name: str = CONVERT, secrets: Sequence[str] = ()
) -> Session:
    """A run of these steps alone; its file is written to `folder`."""
    file = folder / f"{name}.toml"
    text = _RUN.format(name=name, secrets=list(secrets))
    file.write_text(text + "".join(_STEP.format(step=s.name, name=name) for s in steps), encoding="utf-8")
    given = _Given({step.name: step for step in steps})
    return Session(file, on=where.on, account=where.account, extra=(given,))


def among_checkpoints(name: str, where: Where) -> Path:
    """A folder under the role `checkpoints` of this computer's cluster, where its trainers look."""
    with tempfile.TemporaryDirectory() as folder:
        return Path(plain(Loc("checkpoints", name), opened(Path(folder), (), where).binding))


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


class _Given:
    """The hooks of this one run: its assets are the steps of their names, beside each other."""

    def __init__(self, steps: Mapping[str, Step]) -> None:
        self._steps = steps

    @hookimpl
    def prepare_data(self, name: str, asset: Asset) -> list[Step]:
        """The step of that name."""
        return [self._steps[name]]
