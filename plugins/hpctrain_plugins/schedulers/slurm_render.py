"""A step as a Slurm job: what stands in #SBATCH lines, what in sbatch's argv, how ranks start.

Slurm reads its directives before any shell does, line by line, and stops at the first line that is
no comment: a word with a newline or a quote in it could become another directive. So a line holds
only words that match a strict form; all others, and every word of the user's, go through argv.
"""

from __future__ import annotations

import re
from importlib.resources import files

from hpctrain.plugin import (
    Binding,
    Cluster,
    Cmd,
    Duration,
    Guards,
    Handover,
    JobFiles,
    Join,
    Launch,
    Plan,
    PlannedStep,
    Ranks,
    Shape,
    Var,
    Vetting,
    Word,
    step_files,
)
from hpctrain_plugins.schedulers.slurm_answers import ID, NO_ANSWER, REFUSED

NAME = "slurm"
EXPORT = ("HOME", "LANG", "LOGNAME", "USER")
"""All that a job gets of the submitting environment, besides what the facts let through."""
MAIL = "BEGIN,END,FAIL,REQUEUE"
"""What is worth a mail; END and FAIL tell the exit code. https://slurm.schedmd.com/sbatch.html#OPT_mail-type"""
NOTICE_SECONDS = 120
"""How long before its end a job hears USR1, so that it can save."""

START = files("hpctrain_plugins.schedulers").joinpath("slurm_start.sh").read_text()
BEGAN = ': >"steps/$HPC_STEP/began"'
"""The first word of whatever srun started: from here on nothing is started a second time."""
FORKED = (
    "if [[ ${HPC_FENCE:-} ]]; then  # forked by its node's guard; libraries read Slurm's variables",
    "  export SLURM_PROCID=$HPC_RANK SLURM_LOCALID=$HPC_LOCAL_RANK SLURM_NODEID=$HPC_NODE_RANK",
    "  export SLURM_NTASKS=$HPC_WORLD SLURM_NPROCS=$HPC_WORLD SLURM_NNODES=$HPC_NODES",
    "  export SLURM_JOB_NUM_NODES=$HPC_NODES SLURM_STEP_NUM_NODES=$HPC_NODES SLURM_STEP_NUM_TASKS=$HPC_WORLD",
    "  export SLURM_NTASKS_PER_NODE=$((HPC_WORLD / HPC_NODES))",
    "  export SLURM_TASKS_PER_NODE=$SLURM_NTASKS_PER_NODE",
    '  unset "${!PMI@}"  # they name the guard, not this rank',
    "else",
)
"""The first half of rank.sh in a job with spare nodes."""
_SAFE = re.compile(r"--[a-z][a-z-]*(?:=[A-Za-z0-9_.,:/@+*&|\[\]=-]+)?\Z", re.ASCII)


def job_files(planned: PlannedStep, plan: Plan, binding: Binding) -> JobFiles:
    """The step's scripts with their directives, and the sbatch call that submits them."""
    lines, argv = split(requested_resources(planned, plan))
    guards = _guards(planned, plan) if planned.step.launch.spare_nodes else None
    shape = Shape(
        header=tuple(f"#SBATCH {word}" for word in lines),
        job=job_lines(planned, plan.cluster),
        tag='"${1:-}"',
        rank=rank_lines(planned.step.launch),
        node=(BEGAN,),
        start=start(planned, plan.cluster),
        start_nodes=start_nodes(planned.step.launch),
        vetting=_vetting(planned),
        files={"slurm.sh": START},
        handover=Handover(  # SLURM_CONF is slurmd's: https://slurm.schedmd.com/configless_slurm.html
            submit=submit(planned, plan, argv),
            find=(
                *("squeue", "--me", "--noheader", "--states=all", "--format=%i"),
                Join(f"--name={name_of(planned, plan)}.", Var("HPC_TAG")),
            ),
            id=ID,
            refused=REFUSED,
            unclear=NO_ANSWER,
            environ=("SLURM_CONF",),
        ),
        guards=guards,
    )
    return JobFiles(
        files=step_files(planned, plan, binding, shape),
        submit=submit(planned, plan, argv),
        attach=attach(planned),
        mails=True,
    )


def attach(planned: PlannedStep) -> tuple[Word, ...]:
    """A step beside the one that holds the job: it sees all that the job has on its first node."""
    return (
        "srun",
        Join("--jobid=", Var("HPC_JOB")),
        *("--overlap", "--pty", "--export=TERM,HPC_RUN,PWD", "--nodes=1", "--ntasks=1"),
        f"--cpus-per-task={planned.step.launch.cpus_per_rank}",
        *planned.around.starter.get(NAME, ()),
    )


def requested_resources(planned: PlannedStep, plan: Plan) -> tuple[Word, ...]:
    """What the job asks for: our own layout, the queue, the layers; without the user's words."""
    queue = plan.cluster.queue_named(planned.queue)
    users = plan.run.resources.ask.get(NAME, ())
    facts: list[Word] = []
    for table in (queue.ask if queue else {}, planned.around.ask):
        facts += [w for w in table.get(NAME, ()) if w not in facts and w not in users]
    return (*resources(planned, plan), *facts)


def resources(planned: PlannedStep, plan: Plan) -> tuple[str, ...]:
    """The layout of the ranks, and the limits of the job, as options of sbatch."""
    launch, facts = planned.step.launch, plan.cluster.launch
    time = limit(planned, plan)
    names = dict.fromkeys((*EXPORT, *plan.cluster.exported))
    words = [
        f"--nodes={launch.job_nodes}",
        *(("--no-kill",) if launch.spare_nodes else ()),
        f"--ntasks-per-node={launch.ranks_per_node}",
        f"--cpus-per-task={launch.cpus_per_rank}",
        *gpus(launch.gpus_per_node, facts.gpu_request),
    ]
    if launch.memory_gb is not None:
        words.append(f"--mem={launch.memory_gb}G")
    if planned.step.trains and plan.train:  # what does not expect the signal dies of it
        words.append(f"--signal=B:USR1@{_notice(time)}")
    if planned.step.trains and plan.run.resources.mail:
        words += [f"--mail-type={MAIL}", f"--mail-user={plan.run.resources.mail}"]
    return (
        *words,
        f"--time={time.clock}",
        f"--output=logs/{planned.name.replace('%', '%%')}.log",
        "--open-mode=append",
        "--no-requeue" if _is_one_of_several(planned, plan) else "--requeue",
        f"--export={','.join(names)}",
    )


def _notice(time: Duration) -> int:
    return min(NOTICE_SECONDS, time.seconds // 2)


def _is_one_of_several(planned: PlannedStep, plan: Plan) -> bool:
    """Whether another job of a chain follows: behind a lost node it starts sooner than one queued again."""
    resources = plan.run.resources
    return planned.step.trains and resources.is_chain and not resources.requeue


def gpus(count: int, request: str) -> tuple[str, ...]:
    """The request for GPUs in the form that the site documents."""
    if count == 0 or request == "none":
        return ()
    return (f"--gres=gpu:{count}",) if request == "gres" else (f"--gpus-per-node={count}",)


def limit(planned: PlannedStep, plan: Plan) -> Duration:
    """The time limit of the job: the run's for training, else the step's."""
    time_limit = plan.run.resources.time
    return time_limit if planned.step.trains and time_limit else Duration(planned.step.minutes * 60)


def split(words: tuple[Word, ...]) -> tuple[tuple[str, ...], tuple[Word, ...]]:
    """Words that may stand in a directive, and those from the first that may not, for argv.

    Order is kept, since with Slurm the last of two equal options wins and argv wins over lines.
    """
    for index, word in enumerate(words):
        if not (isinstance(word, str) and _SAFE.match(word)):
            return tuple(w for w in words[:index] if isinstance(w, str)), words[index:]
    return tuple(w for w in words if isinstance(w, str)), ()


def submit(planned: PlannedStep, plan: Plan, argv: tuple[Word, ...]) -> Cmd:
    """The call; the tag is in name and comment, since sites rewrite or hide either."""
    run, tag = plan.run, Var("HPC_TAG")
    charged = plan.account_of(planned)
    account = (f"--account={charged}",) if charged else ()
    return Cmd(
        (
            "sbatch",
            "--parsable",
            Join(f"--job-name={name_of(planned, plan)}.", tag),
            Join("--comment=hpctrain:", tag),
            Join("--dependency=", Var("HPC_AFTER")),
            "--kill-on-invalid-dep=yes",
            *((Join("--exclude=", Var("HPC_AVOID")),) if planned.step.trains else ()),
            *account,
            *argv,
            *run.resources.ask.get(NAME, ()),
            f"steps/{planned.name}/job.sh",
            tag,
        )
    )


def name_of(planned: PlannedStep, plan: Plan) -> str:
    """The job's name without its tag."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", f"{plan.run.name}.{planned.name}")[:80]


def start(planned: PlannedStep, cluster: Cluster) -> tuple[Word, ...]:
    """The starter of the ranks; one dead rank ends the others at once.

    One that ended well leaves them ten minutes: they may hang for ever, or rank 0 still saves the model.
    """
    launch = planned.step.launch
    once = launch.ranks is Ranks.ONCE
    words = [
        *_srun(launch.cpus_per_rank, nodes=1 if once else launch.nodes, per_node=launch.ranks_per_node),
        "--kill-on-bad-exit=1",
        "--wait=600",
    ]
    if launch.gpus_per_node and cluster.launch.gpu_request != "none":
        words += ["--gpus-per-task=1"] if launch.visible == "one" else []
        words += [f"--gpu-bind={launch.bind}"] if launch.bind else []
    return (*words, *planned.around.starter.get(NAME, ()))


def start_nodes(launch: Launch) -> tuple[Word, ...]:
    """The starter of one process on each node."""
    return (*_srun(launch.cpus_per_rank, nodes=launch.job_nodes, per_node=1), "--kill-on-bad-exit=1")


def _vetting(planned: PlannedStep) -> Vetting:
    """One process on each fit node of the job; it says itself when it has failed."""
    launch = planned.step.launch
    words: tuple[Word, ...] = (
        *("srun", "--export=ALL", Join("--exclude=", Var("HPC_UNFIT"))),
        *(Join("--nodes=", Var("HPC_FIT")), Join("--ntasks=", Var("HPC_FIT")), "--ntasks-per-node=1"),
    )
    cores = launch.cpus_per_rank * launch.ranks_per_node
    return Vetting(
        start=(*words, "--cpus-per-task=1"),
        start_inside=(*words, f"--cpus-per-task={cores}", *planned.around.starter.get(NAME, ())),
    )


def _guards(planned: PlannedStep, plan: Plan) -> Guards:
    """One guard on each node, with all that its ranks need; nothing of Slurm ends one because of another."""
    launch = planned.step.launch
    cores = launch.cpus_per_rank * launch.ranks_per_node
    return Guards(
        start=(
            *_srun(cores, nodes=launch.job_nodes, per_node=1),
            *("--no-kill", "--overlap", "--wait=0", "--kill-on-bad-exit=0"),
        ),
        node='"$SLURMD_NODENAME"',
        notice=_notice(limit(planned, plan)),
        suffix=_suffix(plan.cluster.launch.interface_suffix),
        functions="slurm.sh",
    )


def _suffix(suffix: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "", suffix)


def _srun(cores: int, nodes: int, per_node: int) -> tuple[str, ...]:
    # srun inherits neither the environment (--export of sbatch) nor, since 22.05, the CPUs a task
    return (
        "srun",
        "--export=ALL",
        f"--nodes={nodes}",
        f"--ntasks={nodes * per_node}",
        f"--ntasks-per-node={per_node}",
        f"--cpus-per-task={cores}",
    )


def job_lines(planned: PlannedStep, cluster: Cluster) -> tuple[str, ...]:
    """Who this job is and where."""
    return (
        "export PATH  # bash has a default, but does not export it by itself",
        "command -v srun >/dev/null || { set +eu; . /etc/profile; set -eu; }",
        "export HPC_JOB=$SLURM_JOB_ID HPC_ATTEMPT=${SLURM_RESTART_COUNT:-0}",
        f"export HPC_NODES=$SLURM_JOB_NUM_NODES HPC_GPUS={planned.step.launch.gpus_per_node}",
        *_head(planned.step.launch, cluster.launch.interface_suffix),
        *(("export HPC_ENDS=${SLURM_JOB_END_TIME:-}",) if planned.step.launch.spare_nodes else ()),
        f". steps/{planned.name}/slurm.sh",
    )


def _head(launch: Launch, suffix: str) -> tuple[str, ...]:
    if launch.nodes == 1:
        return ("export HPC_HEAD=127.0.0.1",)
    return (
        'HPC_HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST")',
        f"export HPC_HEAD=${{HPC_HEAD%%$'\\n'*}}{_suffix(suffix)}",
    )


def rank_lines(launch: Launch) -> tuple[str, ...]:
    """The lines that export the numbers of a rank: `HPC_RANK`, `HPC_WORLD` and the rest."""
    lines = (
        "export HPC_RANK=$SLURM_PROCID HPC_LOCAL_RANK=$SLURM_LOCALID HPC_NODE_RANK=$SLURM_NODEID",
        f"export HPC_WORLD={launch.world}",
        f"((HPC_LOCAL_RANK)) || {BEGAN}",
    )
    return lines if not launch.spare_nodes else (*FORKED, *map("  {}".format, lines), "fi")
