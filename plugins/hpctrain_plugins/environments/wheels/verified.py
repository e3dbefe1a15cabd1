"""The proof of an environment: in the build, and once where training will run."""

from __future__ import annotations

import attrs

from hpctrain.model.cluster import Cluster
from hpctrain.model.step import Artifact, Launch, Need, Step
from hpctrain.model.words import Cmd, Join, Line, Var, Word
from hpctrain_plugins.environments.wheels.options import Expect
from hpctrain_plugins.environments.wheels.wants import Wants
from hpctrain_plugins.environments.wheels.ways import Way

NAME = "verify"


def on_gpu(wants: Wants, cluster: Cluster) -> bool:
    """Whether there is more to prove than the build itself can see."""
    gpu = cluster.hardware.gpu_kind != "cpu" and "torch" in (*wants.named, *wants.first)
    return wants.options.verify and (gpu or wants.options.expect != Expect())


def in_build(wants: Wants, way: Way, prefix: Word) -> tuple[Cmd, ...]:
    """What can be proven without a GPU: that versions fit, and that what was named imports."""
    if not wants.options.verify:
        return ()
    check = () if wants.options.system_site else (way.pip(prefix, "check"),)
    # Compiled packages may need the driver to import: they are proven where it is.
    named = [n for n in wants.named if n not in {s.name for s in wants.compile}]
    imports = Cmd.of(Join(prefix, "/bin/python"), "-m", "hpctrain_job.imports", *named)
    return (*check, imports) if named else check


def step(wants: Wants, cluster: Cluster, made: Artifact, python: Word) -> Step:
    """Imports, torch's own kind, the GPUs, the NCCL that is loaded; kept, so that it happens once."""
    expect, gpus = wants.options.expect, cluster.hardware.gpus_per_node
    devices = expect.devices or min(1, gpus)
    proof = Artifact(
        name="verified",
        role=made.role,
        inputs={
            "env": made.key,
            "imports": list(wants.named),
            "expect": attrs.asdict(expect),
            "gpus": devices,
        },
        arch=made.arch,
        suffix=".txt",
    )
    asked = {"cuda": expect.cuda, "hip": expect.hip, "nccl": expect.nccl, "symbol": expect.symbol}
    words = (f"--{name}={value}" for name, value in asked.items() if value)
    torch = "torch" in (*wants.named, *wants.first)
    commands: list[Line] = [Cmd.of(python, "-m", "hpctrain_job.imports", *wants.named, stdout=Var("WORK"))]
    if torch:
        commands.append(Cmd.of(python, "-m", "hpctrain_job.gpus", f"--devices={devices}", *words))
    if expect.command:
        commands.append(Cmd.of(*expect.command))
    return Step(
        name=NAME,
        commands=tuple(commands),
        needs=frozenset({Need.TARGET, Need.GPU} if devices else {Need.TARGET}),
        inside=True,
        makes=proof,
        launch=Launch(gpus_per_node=devices) if devices else Launch(),
    )


def extended(steps: tuple[Step, ...], *commands: Cmd, **inputs: object) -> tuple[Step, ...]:
    """The same steps with more to prove: what a cluster's wrapper of `build_env` adds to `verify`."""
    return tuple(_more(s, commands, inputs) if s.name == NAME and s.makes else s for s in steps)


def _more(step: Step, commands: tuple[Cmd, ...], inputs: dict[str, object]) -> Step:
    assert step.makes is not None
    makes = attrs.evolve(step.makes, inputs={**step.makes.inputs, **inputs})
    return attrs.evolve(step, commands=(*step.commands, *commands), makes=makes)
