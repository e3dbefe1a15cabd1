"""A step as a job of this machine: the same scripts, started by a small runner in bash."""

from __future__ import annotations

from importlib.resources import files

from hpctrain.plugin import Binding, Cmd, Handover, JobFiles, Plan, PlannedStep, Shape, Var, Word, step_files

NOTICE_SECONDS = 120

_FOLDER = files("hpctrain_plugins.schedulers")
# read once when the plugin is loaded: hooks that plan and render touch no file
SCRIPTS = {
    name: _FOLDER.joinpath(f"local_{name}").read_text()
    for name in ("submit.sh", "find.sh", "runner.sh", "ranks.sh")
}


def job_files(planned: PlannedStep, plan: Plan, binding: Binding) -> JobFiles:
    """The step's scripts with the runner beside them, and the command that starts it."""
    launch, name = planned.step.launch, planned.name
    shape = Shape(
        job=(
            'export HPC_JOB="${HPC_JOB:-local-$$}" HPC_ATTEMPT=0 HPC_HEAD=127.0.0.1',
            f"export HPC_NODES={launch.nodes} HPC_GPUS={launch.gpus_per_node}",
            "hpc_final() { :; }  # nothing is queued again here",
        ),
        tag='"${1:-}"',
        rank=(),
        start=_ranks(name, launch.ranks_per_node, launch.world),
        start_nodes=_ranks(name, 1, launch.nodes),
        files=SCRIPTS,
        handover=Handover(
            submit=submit(planned, plan),
            find=("bash", f"steps/{name}/find.sh", Var("HPC_TAG")),
            id=r"([0-9a-f]{12})",
            refused="did not start within",
            unclear="(?!)",
            environ=("HPC_STATE",),
        ),
    )
    script_files = step_files(planned, plan, binding, shape)
    return JobFiles(files=script_files, submit=submit(planned, plan), attach=())


def submit(planned: PlannedStep, plan: Plan) -> Cmd:
    """The call that starts the runner."""
    seconds = limit(planned, plan)
    return Cmd.of(
        "bash",
        f"steps/{planned.name}/submit.sh",
        planned.name,
        Var("HPC_TAG"),
        str(seconds),
        str(min(NOTICE_SECONDS, seconds // 2)),
        ",".join(plan.cluster.exported),
        Var("HPC_AFTER"),
    )


def limit(planned: PlannedStep, plan: Plan) -> int:
    """The time that the user set for training; here nothing else is limited."""
    time = plan.run.resources.time
    return time.seconds if planned.step.trains and time else 0


def _ranks(step: str, per_node: int, world: int) -> tuple[Word, ...]:
    return ("bash", f"steps/{step}/ranks.sh", str(per_node), str(world))
