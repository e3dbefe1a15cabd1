"""The proof of an environment: in the build, and once where training will run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hpctrain.plugin import Artifact, Cluster, Cmd, Join, Launch, Need, Step, Var, Word
from hpctrain_plugins.environments.wheels.options import Expect

if TYPE_CHECKING:
    from hpctrain_plugins.environments.wheels.packages_spec import PackagesSpec
    from hpctrain_plugins.environments.wheels.ways import Way

NAME = "verify"


def on_gpu(spec: PackagesSpec, cluster: Cluster) -> bool:
    """Whether there is more to prove than the build itself can see."""
    gpu = cluster.hardware.gpu_kind != "cpu" and "torch" in (*spec.named, *spec.first)
    return spec.options.verify and (gpu or spec.options.expect != Expect())


def in_build(spec: PackagesSpec, way: Way, prefix: Word) -> tuple[Cmd, ...]:
    """What can be proven without a GPU: that versions fit, and that what was named imports."""
    if not spec.options.verify:
        return ()
    check = () if spec.options.system_site else (way.pip(prefix, "check"),)
    # Compiled packages may need the driver to import: they are proven where it is.
    named = [n for n in spec.named if n not in {s.name for s in spec.compile}]
    imports = Cmd.of(Join(prefix, "/bin/python"), "-m", "hpctrain_job.imports", *named)
    return (*check, imports) if named else check


def step(spec: PackagesSpec, cluster: Cluster, artifact: Artifact, python: Word) -> Step:
    """Imports, torch's own kind, the GPUs, the NCCL that is loaded; kept, so that it happens once."""
    expect = spec.options.expect
    gpus = devices(expect, cluster)
    proof = Artifact(
        name="verified",
        role=_role_of_proof(cluster, artifact.role),
        inputs={
            "env": artifact.key,
            "imports": list(spec.named),
            "expect": attrs.asdict(expect),
            "gpus": gpus,
        },
        arch=artifact.arch,
        suffix=".txt",
    )
    torch = "torch" in (*spec.named, *spec.first)
    proofs = gpu_commands(python, expect, gpus) if torch else own_command(expect)
    return Step(
        name=NAME,
        commands=(Cmd.of(python, "-m", "hpctrain_job.imports", *spec.named, stdout=Var("WORK")), *proofs),
        needs=frozenset({Need.TARGET, Need.GPU} if gpus else {Need.TARGET}),
        inside=True,
        makes=proof,
        launch=Launch(gpus_per_node=gpus) if gpus else Launch(),
    )


def devices(expect: Expect, cluster: Cluster) -> int:
    """How many GPUs the proof needs: one, where there are some."""
    return expect.devices or min(1, cluster.hardware.gpus_per_node)


def gpu_commands(python: Word, expect: Expect, gpus: int, *options: str) -> tuple[Cmd, ...]:
    """torch's own kind, the GPUs, the NCCL that is loaded, and the user's own command."""
    expectations = {"cuda": expect.cuda, "hip": expect.hip, "nccl": expect.nccl, "symbol": expect.symbol}
    words = (f"--{name}={value}" for name, value in expectations.items() if value)
    seen = Cmd.of(python, "-m", "hpctrain_job.gpus", f"--devices={gpus}", *words, *options)
    return (seen, *own_command(expect))


def own_command(expect: Expect) -> tuple[Cmd, ...]:
    """The user's own proof."""
    return (Cmd.of(*expect.command),) if expect.command else ()


def _role_of_proof(cluster: Cluster, role: str) -> str:
    """Beside the environment, or in the user's own state where nodes that prove it may not write."""
    storage = cluster.storage.get(role)
    return "state" if storage and storage.writable else role


def extended(steps: tuple[Step, ...], *commands: Cmd, **inputs: object) -> tuple[Step, ...]:
    """The steps of an environment with more commands in `verify`: what a cluster's wrapper of `build_env`
    adds."""
    return tuple(_extended(s, commands, inputs) if s.name == NAME and s.makes else s for s in steps)


def _extended(step: Step, commands: tuple[Cmd, ...], inputs: dict[str, object]) -> Step:
    assert step.makes is not None
    artifact = attrs.evolve(step.makes, inputs={**step.makes.inputs, **inputs})
    return attrs.evolve(step, commands=(*step.commands, *commands), makes=artifact)
