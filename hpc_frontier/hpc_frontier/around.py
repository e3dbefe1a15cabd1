"""What goes around a step on Frontier, besides modules and network: those are facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from hpctrain.plugin import (
    Cluster,
    Cmd,
    EnvVar,
    File,
    How,
    Layer,
    Module,
    Need,
    Ranks,
    RunSpec,
    Scope,
    Step,
    template,
)
from hpctrain_plugins.named_logs import linked

CACHE = "/tmp/${USER}-hpctrain-${HPC_JOB}"  # noqa: S108  (each node's own, and each job's)
"""The folder of one node and one job: no other job can find it half written."""
LIBRARIES = """\
# Libraries of a Cray environment that is not the default one, in front of the default's: OLCF's own line.
[[ -z ${CRAY_LD_LIBRARY_PATH:-} ]] \\
  || export LD_LIBRARY_PATH=$CRAY_LD_LIBRARY_PATH${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
"""


def layer(run: RunSpec, cluster: Cluster, step: Step) -> Layer | None:
    """Around training, around what needs ROCm, and around conda's downloads."""
    if step.trains:
        return _training(run, cluster, step)
    if Need.TARGET in step.needs:
        modules = cluster.modules.build if cluster.modules else ()
        libraries = _libraries(step, modules)
        return attrs.evolve(libraries, env=tuple(_compilers(modules)))
    if run.environment.use == "conda" and step.name == "wheels" and cluster.modules:
        # It needs no ROCm, so that the facts put no module around it; but conda is one.
        return Layer(modules=tuple(map(Module.parse, cluster.modules.build)))
    return None


def _training(run: RunSpec, cluster: Cluster, step: Step) -> Layer:
    caches: Mapping[str, Any] = {k: v for k, v in cluster.facts["caches"].items() if k != "source"}
    folders = dict.fromkeys(f"{CACHE}/{cache['below']}" for cache in caches.values())
    deepspeed = _deepspeed(run, cluster)
    modules = cluster.modules.run if cluster.modules else ()
    libraries = _libraries(step, modules)
    return Layer(
        env=(
            *(_cache(name, cache, cluster) for name, cache in caches.items()),
            *_compilers(modules),
            *_only_gpu(step),
            *deepspeed.env,
        ),
        job=(
            *libraries.job,
            *linked(f"{run.name}-${{HPC_JOB}}.o"),
        ),  # the tutorial's: logs/<job's name>-<job's id>.o
        node=(Cmd.of("mkdir", "-p", *map(template, folders)),),
        task=deepspeed.task,
        files=(*libraries.files, *deepspeed.files),
    )


def _libraries(step: Step, modules: tuple[str, ...]) -> Layer:
    """A line of job.sh behind the modules, where one of them is a Cray environment chosen by its number."""
    if not any(name.startswith("cpe/") for name in modules):
        return Layer()
    return Layer(
        job=(Cmd.of(".", f"steps/{step.name}/cray.sh"),),
        files=(File(path="cray.sh", body=(LIBRARIES,)),),
    )


def has_deepspeed(run: RunSpec) -> bool:
    """Whether DeepSpeed is among the run's packages."""
    every = (*run.environment.packages, *run.environment.compile)
    return any(package.name.lower() == "deepspeed" for package in every)


def _deepspeed(run: RunSpec, cluster: Cluster) -> Layer:
    """The file that DeepSpeed's launcher reads."""
    if not has_deepspeed(run):
        return Layer()
    from hpc_frontier import deepspeed  # most runs do without

    return deepspeed.layer(run, cluster)


def _cache(name: str, cache: Mapping[str, Any], cluster: Cluster) -> EnvVar:
    return EnvVar(
        name=name,
        value=template(f"{CACHE}/{cache['below']}"),
        at=Scope.NODE,
        why=cache["why"],
        fact=cluster.facts["caches"]["source"],
    )


def _compilers(modules: tuple[str, ...]) -> Iterator[EnvVar]:
    """What extensions are compiled with; the tutorial's values, made from the modules that are loaded."""
    rocm = next((name for name in modules if name.startswith("rocm/")), "")
    if rocm:
        value = f"/opt/{rocm.replace('/', '-')}"
        why = "extensions look here for hipcc and its headers"
        yield EnvVar(name="ROCM_HOME", value=value, how=How.DEFAULT, why=why, fact="tutorial")
    for name, value in (("CC", "gcc"), ("CXX", "g++")):
        why = "torch's extensions are not compiled by Cray's wrappers"
        yield EnvVar(name=name, value=value, how=How.DEFAULT, why=why, fact="tutorial")


def _only_gpu(step: Step) -> Iterator[EnvVar]:
    """A rank that sees one GCD finds it as number 0, whatever its place on the node."""
    if step.launch.visible == "one" and step.launch.ranks is Ranks.PER_GPU:
        why = "each rank sees its own GCD alone, as number 0"
        yield EnvVar(name="LOCAL_RANK", value="0", why=why, fact="olcf-pytorch")
