"""What the cluster's facts alone put around a step: place, modules, network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hpctrain.model.cluster import Cluster, Place
from hpctrain.model.layer import Bind, EnvVar, How, Layer, Module, Scope
from hpctrain.model.network import Network, TrainingVar
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Launch, Need, Step
from hpctrain.model.words import Cmd, Join, Loc, Secret, Var, Word, template
from hpctrain.plan import tokens

OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE")
SOURCE = Var("HPC_SOURCE")
"""The run's own copy of its code; the asset itself is shared by all runs of the same code."""
LOGS = "logs"
"""The storage role in which each training job's log has a link, named by run and job."""
VISIBLE = {"cuda": "CUDA_VISIBLE_DEVICES", "rocm": "ROCR_VISIBLE_DEVICES", "xpu": "ZE_AFFINITY_MASK"}
"""The variable that says which GPUs a process sees, and in which order."""
QUIET = {
    "PYTHONUNBUFFERED": ("1", "a line of log is seen when it is written"),
    "NO_COLOR": ("1", "logs hold no escape codes"),
    "TQDM_MININTERVAL": ("30", "a bar in a log is one line every 30 s"),
}


def core_layer(step: Step) -> Layer:
    """What every task gets, unless somebody else decides."""
    env = [
        EnvVar(name=name, value=value, how=How.DEFAULT, why=why, source="core")
        for name, (value, why) in QUIET.items()
    ]
    if step.inside and Need.NETWORK not in step.needs:
        why = "steps inside the environment work from what was fetched before"
        env += [EnvVar(name=name, value="1", why=why, source="core") for name in OFFLINE]
    return Layer(env=tuple(env), source="core")


def secrets_layer(run: RunSpec) -> Layer:
    """The run's tokens in the variables where programs look for them, in the training step alone."""
    env = (
        EnvVar(
            name=tokens.variable(name),
            value=Secret(name),
            why=f"the run file names the secret {name}",
            source="core",
        )
        for name in run.secrets
    )
    return Layer(env=tuple(env), source="core")


def source_layer(code: Word) -> Layer:
    """The copy of the code, made in the job before anything names it."""
    why = "programs write beside their code, and the code itself serves other runs"
    folder = Join(Var("HPC_RUN"), "/source")
    env = EnvVar(name=SOURCE.name, value=folder, at=Scope.JOB, why=why, source="core")
    of_the_user = () if isinstance(code, Loc) else ("own",)
    return Layer(env=(env,), job=(Cmd.of("hpc_source", code, *of_the_user),), source="core")


def logs_layer(run: RunSpec, cluster: Cluster, step: Step) -> Layer:
    """The training's log where the site's users look for it, if facts name a folder for logs."""
    if LOGS not in cluster.storage:
        return Layer()
    link = Join(Loc(LOGS), f"/{run.name}_", Var("HPC_JOB"), ".out")
    log = Join(Var("HPC_RUN"), f"/logs/{step.name}.log")
    return Layer(job=(Cmd.of("hpc_link", log, link),), source="core")


def place_layer(place: Place) -> Layer:
    """The place's variables (a proxy), modules and scheduler words."""
    env = tuple(
        EnvVar(
            name=n,
            value=template(v),
            why=place.why or f"{place.name} needs it",
            source=place.name,
            fact=place.source,
        )
        for n, v in place.env.items()
    )
    modules = tuple(map(Module.parse, place.modules))
    return Layer(env=env, modules=modules, ask=dict(place.ask), source=place.name)


def cluster_layer(cluster: Cluster, step: Step, technology: str) -> Layer:
    """The modules of the site, for building or for running, and the order of its GPUs."""
    if Need.TARGET not in step.needs:
        return Layer()
    modules: tuple[str, ...] = ()
    if cluster.modules is not None and _takes_modules(cluster, step, technology):
        modules = cluster.modules.run if step.trains else cluster.modules.build
    order = _gpu_order(cluster, step)
    return Layer(
        modules=tuple(map(Module.parse, modules)), env=(order,) if order else (), source=cluster.name
    )


def _takes_modules(cluster: Cluster, step: Step, technology: str) -> bool:
    """Whether the site's modules have an effect: a container brings its own."""
    return not (step.inside and cluster.modules and technology in cluster.modules.unless)


def _gpu_order(cluster: Cluster, step: Step) -> EnvVar | None:
    """The variable by which ranks see the node's last GPU first."""
    name, count = VISIBLE.get(cluster.hardware.gpu_kind), step.launch.gpus_per_node
    if not step.trains or cluster.launch.gpu_order == "forward" or name is None or count < 2:
        return None
    return EnvVar(
        name=name,
        value=",".join(map(str, reversed(range(count)))),
        why="the first cores of a node are nearest to its last GPU",
        source=cluster.name,
        fact=cluster.launch.source,
    )


def training_layer(cluster: Cluster, step: Step, run: RunSpec) -> Layer:
    """The cluster's variables and its network table, for this number of nodes and the technology of the run's
    environment: for training alone."""
    if not step.trains:
        return Layer()
    technology, many = run.environment.use, step.launch.nodes > 1
    when = ("all", "many" if many else "one")
    return Layer(
        env=(
            *_rows(cluster.var, cluster.name, when, technology),
            *_rows(cluster.network.var, f"{cluster.name} network", when, technology),
        ),
        modules=tuple(map(Module.parse, cluster.network.modules))
        if many and _takes_modules(cluster, step, technology)
        else (),
        binds=tuple(map(Bind.parse, cluster.network.binds)) if many else (),
        ask=dict(cluster.network.ask) if many else {},
        job=_fabric(cluster.network, step.launch, run.resources.on_slow_network or "stop") if many else (),
        source=f"{cluster.name} network",
    )


def _fabric(network: Network, launch: Launch, on_slow: str) -> tuple[Cmd, ...]:
    """NCCL falls back to TCP without a word but one line of log: a program beside the ranks reads it."""
    if not (network.proof and network.refuse) or launch.world <= 1 or on_slow == "off":
        return ()
    words = (
        f"--nodes={launch.nodes}",
        f"--per-node={launch.ranks_per_node}",
        f"--on-slow={on_slow}",
        f"--proof={network.proof}",
        f"--refuse={network.refuse}",
    )
    return (Cmd.of("hpc_fabric", *words),)


def _rows(rows: Iterable[TrainingVar], source: str, when: Iterable[str], technology: str) -> Iterator[EnvVar]:
    return (_variable(row, source) for row in rows if row.nodes in when and technology not in row.unless)


def _variable(row: TrainingVar, source: str) -> EnvVar:
    return EnvVar(
        name=row.name,
        value=template(row.value),
        how=How(row.how),
        at=Scope(row.at),
        why=row.why,
        source=source,
        fact=row.source,
    )
