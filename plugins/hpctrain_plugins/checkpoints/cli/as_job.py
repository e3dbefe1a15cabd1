"""A command line of ours as steps of a run that the cluster's scheduler starts: `convert --job`."""

from __future__ import annotations

import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from hpctrain.command import Out, Session, StepLines, report_submission
from hpctrain.plugin import Asset, Cmd, ConfigError, Launch, Loc, Need, Ranks, Step, hookimpl
from hpctrain.toolbox import NATIVE, plain_text
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
    source: Path, target: str, place: Path, options: Mapping[str, Any], name: str = CONVERT, nodes: int = 1
) -> Step:
    """One step in the scheduler's hands; the job checks everything once more when it starts."""
    argv = (str(source.absolute()), "--to", target, "--out", str(place.absolute()), *words(options))
    argv += ("--shared",) if nodes > 1 else ()
    threads = ConvertOptions(threads=options.get("threads")).workers()
    ranks = Ranks.PER_NODE if nodes > 1 else Ranks.ONCE
    return Step(
        name=name,
        commands=(Cmd((*program(), "convert", *argv)),),
        # No GPU is used; but only a place that trains is surely not the login node.
        needs=frozenset({Need.TARGET, Need.GPU}),
        launch=Launch(ranks=ranks, nodes=nodes, cpus_per_rank=threads),
        minutes=_MINUTES,
    )


def program() -> tuple[str, ...]:
    """The command with which a step starts this installation of hpctrain."""
    return (sys.executable, "-m", "hpctrain")


def submit(
    out: Out, steps: Sequence[Step], where: Where, name: str = CONVERT, secrets: Sequence[str] = ()
) -> None:
    """Submit them as one run and say which it is."""
    with tempfile.TemporaryDirectory() as folder:
        session = opened(Path(folder), steps, where, name, secrets)
        _same_kind(session)
        prepared = session.prepared()
        prepared.judge()  # what it warns of is pins, and nothing here moves
        with StepLines(out, len(steps)) as step_lines:
            run, outcome = prepared.submit(step_lines.tell)
    report_submission(out, run.directory, outcome)


def opened(
    folder: Path, steps: Sequence[Step], where: Where, name: str = CONVERT, secrets: Sequence[str] = ()
) -> Session:
    """A run of these steps alone; its file is written to `folder`."""
    file = folder / f"{name}.toml"
    text = _RUN.format(name=name, secrets=list(secrets))
    file.write_text(text + "".join(_STEP.format(step=s.name, name=name) for s in steps), encoding="utf-8")
    hooks = _StepHooks({step.name: step for step in steps})
    return Session(file, on=where.on, account=where.account, extra=(hooks,))


def among_checkpoints(name: str, where: Where) -> Path:
    """A folder under the role `checkpoints` of this computer's cluster, where its trainers look."""
    with tempfile.TemporaryDirectory() as folder:
        return Path(plain_text(Loc("checkpoints", name), opened(Path(folder), (), where).binding))


def words(options: Mapping[str, Any]) -> list[str]:
    """The options as a command line gives them, paths as seen from anywhere."""
    arguments: list[str] = []
    for name, value in options.items():
        flag = _NAMES.get(name, "--" + name.replace("_", "-"))
        if value is True:
            arguments.append(flag)
        elif value is False and name == "rope_interleaved":
            arguments.append("--no-rope-interleaved")
        elif value not in (False, ""):
            arguments += [flag, str(value.absolute() if isinstance(value, Path) else value)]
    return arguments


def _same_kind(session: Session) -> None:
    """The job starts this Python, so it must be one for the nodes that it runs on."""
    local_arch, cluster_arch = platform.machine(), session.cluster.arch
    if cluster_arch not in (local_arch, NATIVE):
        raise ConfigError.of(
            "architecture",
            f"this Python is for {local_arch}, the nodes of {session.cluster.name} are {cluster_arch}",
            hint="the same command without --job: a conversion needs no GPU",
        )


class _StepHooks:
    """The hooks of this one run: its assets are the steps of their names, beside each other."""

    def __init__(self, steps: Mapping[str, Step]) -> None:
        self._steps = steps

    @hookimpl
    def prepare_data(self, name: str, asset: Asset) -> list[Step]:
        """The step of a conversion or upload, which is planned like an asset of that name."""
        return [self._steps[name]]
