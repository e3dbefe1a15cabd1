"""Assets from the hub, an address, git, a path or a command.

Network steps run outside the environment with the control plane's Python; what is moving is named by
its pin. A `path` that is absolute is a place on the cluster and is used where it lies: no step. A
relative one is a file beside the run file and is copied, by content.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from hpctrain.defaults import names, sources
from hpctrain.hooks.marker import hookimpl
from hpctrain.model.cluster import Cluster
from hpctrain.model.layer import EnvVar, Layer
from hpctrain.model.run import Asset, RunSpec
from hpctrain.model.step import Artifact, Need, Pin, Step, Steps
from hpctrain.model.words import Cmd, Join, Loc, Secret, Var, Word

ROLE = "assets"
NETWORK = frozenset({Need.NETWORK})
HOUR = 60
_SUFFIX = re.compile(r"(?:\.[A-Za-z0-9]{1,8}){1,2}\Z", re.ASCII)


@hookimpl(trylast=True)
def prepare_data(
    name: str, asset: Asset, run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]
) -> Steps | None:
    """Bring one asset; () when it lies where it is used."""
    if asset.hub:
        return (_hub(name, asset, run, cluster, pins),)
    if asset.url:
        return (_url(name, asset),)
    if asset.git:
        return (_git(name, asset, pins),)
    if asset.path:
        return () if asset.path.startswith(("/", "~")) else (_copy(name, asset),)
    if asset.command:
        return (_command(name, asset, run),)
    return None


def _hub(name: str, asset: Asset, run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> Step:
    kind = "dataset" if names.kind(name, asset) == "dataset" else "model"
    revision = names.revision(pins, asset.hub, kind, asset.revision)
    inputs = {"hub": asset.hub, "kind": kind, "revision": revision, "files": list(asset.files)}
    artifact = Artifact(name="hub", role=ROLE, inputs=inputs, arch="any")
    room = cluster.storage.get(ROLE)
    get = Cmd.of(
        *(Var("HPC_PYTHON"), "-m", "hpctrain_job.hub", asset.hub),
        *("--kind", kind, "--revision", revision),
        *("--into", Var("WORK"), "--partial", _partial(artifact)),
        *(Join("--include=", pattern) for pattern in asset.files),
        *((f"--quota-gb={room.quota_gb:g}",) if room and room.quota_gb else ()),
    )
    return Step(
        name=name, commands=(get,), needs=NETWORK, makes=artifact, minutes=2 * HOUR, layer=_token(run)
    )


def _url(name: str, asset: Asset) -> Step:
    from urllib.parse import urlsplit

    suffix = _SUFFIX.search(PurePosixPath(urlsplit(asset.url).path).name)
    artifact = Artifact(
        name="url",
        role=ROLE,
        inputs={"sha256": asset.sha256} if asset.sha256 else {"url": asset.url},
        arch="any",
        suffix=suffix.group() if suffix else "",
    )
    get = Cmd.of(
        *(Var("HPC_PYTHON"), "-m", "hpctrain_job.fetch", asset.url),
        *("--into", Var("WORK"), "--partial", _partial(artifact)),
        *(("--sha256", asset.sha256) if asset.sha256 else ()),
    )
    return Step(name=name, commands=(get,), needs=NETWORK, makes=artifact, minutes=HOUR)


def _git(name: str, asset: Asset, pins: tuple[Pin, ...]) -> Step:
    commit = names.commit(pins, asset.git, asset.rev)
    artifact = Artifact(name="git", role=ROLE, inputs={"git": asset.git, "commit": commit}, arch="any")
    commands = sources.clone(asset.git, commit, Var("WORK"))
    return Step(name=name, commands=commands, needs=NETWORK, makes=artifact, minutes=HOUR)


def _copy(name: str, asset: Asset) -> Step:
    inputs = {"sha256": asset.sha256} if asset.sha256 else {"path": asset.path}
    suffix = _SUFFIX.search(asset.path)
    artifact = Artifact(
        name="file", role=ROLE, inputs=inputs, arch="any", suffix=suffix.group() if suffix else ""
    )
    commands = sources.copy(asset.path, Var("WORK"), sha256=asset.sha256)
    return Step(name=name, commands=commands, makes=artifact)


def _command(name: str, asset: Asset, run: RunSpec) -> Step:
    """A command of the user, in a folder that holds its inputs and nothing else."""
    content = {path: run.inputs.get(path, "") for path in asset.inputs}
    inputs = {"command": list(asset.command), "inputs": content}
    artifact = Artifact(name="made", role=ROLE, inputs=inputs, arch="any")
    folder = Join(Var("HPC_RUN"), f"/steps/{name}/inputs")
    python: Word = "python" if run.environment.use else Var("HPC_PYTHON")  # inside
    brought = tuple(
        cmd
        for path, sha256 in content.items()
        for cmd in sources.copy(path, Join(folder, f"/{path}"), sha256=sha256, python=python)
    )
    return Step(
        name=name,
        commands=(Cmd.of("mkdir", "-p", folder), *brought, Cmd(asset.command, cwd=folder)),
        needs=frozenset({Need.TARGET}),
        inside=True,
        makes=artifact,
        minutes=HOUR,
    )


def _partial(artifact: Artifact) -> Loc:
    """Where a download waits until it is whole; named by content, so that a second try continues."""
    return Loc(ROLE, f".partial/{artifact.filename}")


def _token(run: RunSpec) -> Layer:
    if "huggingface" not in run.secrets:
        return Layer()
    why = "gated repositories ask who you are"
    return Layer(env=(EnvVar(name="HF_TOKEN", value=Secret("huggingface"), why=why),))
