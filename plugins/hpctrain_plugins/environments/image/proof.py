"""The proof of an environment in an image: Python starts where it will train, imports all, and sees a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from hpctrain.plugin import After, Artifact, Cluster, Cmd, Launch, Need, Step, Var
from hpctrain_plugins.environments.wheels import verified
from hpctrain_plugins.environments.wheels.options import Expect


def step(
    named: tuple[str, ...],
    inputs: Mapping[str, object],
    arch: str,
    cluster: Cluster,
    expect: Expect,
    after: Iterable[Step] = (),
) -> Step:
    """Kept, so that it happens once for what it was made of."""
    before = tuple(after)[-1:]
    devices = verified.devices(expect, cluster)
    proven = {"expect": attrs.asdict(expect), "gpus": devices} if devices or expect != Expect() else {}
    # The base has torch, or nobody has: where the run file expects something of it, it must be there.
    optional = () if expect != Expect() else ("--if-there",)
    gpus = verified.gpu_commands("python3", expect, devices, *optional) if proven else ()
    return Step(
        name=verified.NAME,
        commands=(Cmd.of("python3", "-m", "hpctrain_job.imports", *named, stdout=Var("WORK")), *gpus),
        needs=frozenset({Need.TARGET, Need.GPU} if devices else {Need.TARGET}),
        inside=True,
        makes=Artifact(
            name="verified",
            role="env",
            inputs={"imports": list(named), **proven, **inputs},
            arch=arch,
            suffix=".txt",
        ),
        after=tuple(After(step.name) for step in before),
        launch=Launch(gpus_per_node=devices) if devices else Launch(),
    )
