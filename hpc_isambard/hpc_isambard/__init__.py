"""Isambard-AI as hpctrain sees it: facts in `cluster.toml`, and which NCCL training loads."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

import attrs

from hpc_isambard import limits, nccl, temporary
from hpctrain.plugin import Cluster, EnvVar, Layer, Pin, Plan, Problem, Rule, RunSpec, Step, hookimpl

HPCTRAIN_API = 1

CONTAINERS = ("apptainer", "edf")
"""Environments with compilers of their own."""
Answer = Generator[None, "tuple[Step, ...] | None", "tuple[Step, ...] | None"]


@hookimpl(wrapper=True)
def build_env(run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]) -> Answer:
    """Prove in the job that the NCCL which is really loaded is as new as torch needs."""
    from hpctrain_plugins.environments.wheels.verified import extended

    steps = yield
    needed = nccl.needed(run, cluster, pins)
    if steps is None or needed is None:
        return steps
    return extended(tuple(steps), needed.proof(), nccl=needed.version, symbol=needed.symbol)


@hookimpl(wrapper=True)
def enter_env(
    run: RunSpec, cluster: Cluster, pins: tuple[Pin, ...]
) -> Generator[None, Layer | None, Layer | None]:
    """Preload one NCCL in each task, by its absolute path; never in the job, whose srun is the site's."""
    layer = yield
    needed = nccl.needed(run, cluster, pins)
    if layer is None or needed is None:
        return layer
    chosen = nccl.choose(layer, run, cluster, needed)
    if chosen is None:
        return layer
    return attrs.evolve(
        layer,
        env=(*layer.env, chosen.preload()),
        modules=(*layer.modules, *chosen.modules),
        task=(*layer.task, *chosen.existence_check),
    )


@hookimpl
def surround(run: RunSpec, cluster: Cluster, step: Step) -> Layer | None:
    """A folder for temporary files in every job; the document's compilers in the environment; the log of
    training under the document's name as well: logs/<job's name>-<job's id>.out."""
    from hpctrain_plugins.named_logs import linked

    place = cluster.place_named(step.place)
    if place is None or place.here:
        return None
    layer = temporary.layer(cluster)
    if step.inside and run.environment.use not in CONTAINERS:
        layer = attrs.evolve(layer, env=(*layer.env, *_compilers(cluster)))
    return attrs.evolve(layer, job=linked(f"{run.name}-${{HPC_JOB}}.out")) if step.trains else layer


def _compilers(cluster: Cluster) -> Iterator[EnvVar]:
    """What compiles when it is first used: DeepSpeed's operators, Triton's launchers, NeoX's kernels."""
    facts = cluster.facts["compilers"]
    for name in ("CC", "CXX", "CUDAHOSTCXX"):
        yield EnvVar(
            name=name,
            value=facts[name],
            why="the system's gcc is 7.5, which torch's headers refuse",
            fact=facts["source"],
        )
    yield EnvVar(
        name="TORCH_CUDA_ARCH_LIST",
        value=cluster.facts["cuda_arch"],
        why="a GH200 calls itself 90a, which torch's builder of extensions cannot read",
        fact=facts["source"],
    )


@hookimpl
def check_run(run: RunSpec, cluster: Cluster, plan: Plan) -> Iterable[Problem]:
    """What would load another NCCL than torch was built with, or build against one; the site's limits."""
    yield from nccl.problems(run, cluster, plan)
    yield from limits.problems(run, cluster, plan)


@hookimpl
def diagnose_rules() -> Iterable[Rule]:
    """Failures that the users of this machine met."""
    return RULES


RULES = (
    Rule(
        name="nccl-symbol",
        pattern=r"undefined symbol: nccl\w+",
        cause="the NCCL that is loaded is older than the one torch was built with",
        fix="no LD_PRELOAD in [env], no brics/nccl module: the environment's own is preloaded",
        sure="certain",
    ),
    Rule(
        name="preload-ignored",
        pattern=r"ERROR: ld\.so: object '[^']*' from LD_PRELOAD cannot be preloaded",
        cause="LD_PRELOAD names a missing file, or a relative path; the program went on without it",
        fix='[env]\nLD_PRELOAD = "/absolute/path/libnccl.so.2"      or leave it out',
        sure="certain",
    ),
    Rule(
        name="cuda-arch-90a",
        pattern=r"invalid literal for int\(\) with base 10: '90a'",
        cause="what compiles asked the GPU, which calls itself 90a",
        fix='[env]\nTORCH_CUDA_ARCH_LIST = "9.0"      (the default here, in every job of the environment)',
        sure="certain",
    ),
    Rule(
        name="stale-cache",
        pattern=r"Errno 116|Stale file handle",
        cause="a compiler's cache lies on a shared disk, where other nodes replace its files",
        fix='[env]\nTRITON_CACHE_DIR = "/dev/shm/${USER}-triton"',
    ),
    Rule(
        name="experts-hang",
        pattern=r"Watchdog caught collective operation timeout: WorkNCCL\([^)]*OpType=ALLTOALL",
        cause="all-to-all over nodes hangs with the site's plugin, aws-ofi-nccl 1.8.1: every 7 to 14 minutes",
        fix="tensor x expert parallelism of at most 4, inside a node; from 1.17 on the plugin has it mended",
    ),
    Rule(
        name="tmpdir-gone",
        pattern=r"(?:PermissionError|FileNotFoundError): \[Errno (?:13|2)\] [^:]*: '/local/user/\d+",
        cause="the folder for temporary files that the site names is not on this node, or vanished",
        fix='no TMPDIR below /local in [env]: jobs have "/dev/shm/${USER}-hpctrain"',
        sure="certain",
    ),
)
