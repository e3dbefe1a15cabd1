"""A step as a PBS job: what stands in #PBS lines, what in qsub's argv, how ranks start.

qsub reads directives line by line before any shell does: a word with a newline in it could become another
directive. So a line holds only words that match a strict form; all others, and every word of the user's, go
through argv, which wins over lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files

from hpctrain.plugin import (
    Binding,
    Cluster,
    Cmd,
    Handover,
    JobFiles,
    Join,
    Launch,
    Plan,
    PlannedStep,
    Shape,
    Var,
    Word,
    step_files,
)
from hpctrain.toolbox import VISIBLE_GPUS
from hpctrain_plugins.schedulers.pbs_answers import ID, LIMITS, NO_ANSWER, REFUSED_WORDS
from hpctrain_plugins.schedulers.pbs_query import MARK, VARIABLE

NAME = "pbs"
EXPORT = ("LANG",)
"""What a job gets of the caller's environment, besides what the facts let through; PBS sets HOME and USER."""
NOTICE_SECONDS = 120
"""How long before its end a job hears USR1, so that it can save."""
_FOLDER = files("hpctrain_plugins.schedulers")
# read once when the plugin is loaded: hooks that plan and render touch no file
SCRIPTS = {
    name: _FOLDER.joinpath(f"pbs_{file}").read_text()
    for name, file in {"qsub.sh": "qsub.sh", "pbs.sh": "job.sh", "mpiexec.sh": "mpiexec.sh"}.items()
}
_SAFE = re.compile(r"-[A-Za-z](?: ?[A-Za-z0-9_.:/@+^=-][A-Za-z0-9_.,:/@+*&^=-]*)?\Z", re.ASCII)

MAIL = "abe"
"""A mail when the job is aborted, begins and ends: PBS names them by letters."""


def job_files(planned: PlannedStep, plan: Plan, binding: Binding) -> JobFiles:
    """The step's scripts with their directives, and the call that submits them."""
    lines, argv = split(requested(planned, plan))
    launch, folder = planned.step.launch, f"steps/{planned.name}"
    seconds = limit(planned, plan)
    shape = Shape(
        header=tuple(f"#PBS {word}" for word in lines),
        # PBS starts a job at home
        begin=(f'[[ -z ${{{VARIABLE}:-}} ]] || {{ cd -- "$PBS_O_WORKDIR"; . {folder}/env; }}',),
        job=job_lines(planned, plan.cluster),
        tag=f'"${{{VARIABLE}:+${{{VARIABLE}#{MARK}}}}}"',
        notice=seconds - min(NOTICE_SECONDS, seconds // 2) if planned.step.trains and plan.train else 0,
        rank=rank_lines(planned, plan.cluster),
        start=starter(planned, launch.ranks_per_node, launch.world),
        start_nodes=starter(planned, 1, launch.nodes),
        files=SCRIPTS,
        handover=Handover(
            submit=submit(planned, plan, argv),
            find=("qselect", "-N", Join(f"{name_of(planned, plan)}.", Var("HPC_TAG"))),
            id=ID,
            refused=f"{REFUSED_WORDS}|{LIMITS}",
            unclear=NO_ANSWER,
            environ=("PBS_CONF_FILE",),
        ),
    )
    return JobFiles(
        files=step_files(planned, plan, binding, shape),
        submit=submit(planned, plan, argv),
        attach=None,
        mails=True,
    )


def requested(planned: PlannedStep, plan: Plan) -> tuple[Word, ...]:
    """What the job asks for: our own layout, the queue, the layers; without the user's words."""
    queue, users = plan.cluster.queue_named(planned.queue), plan.run.resources.ask.get(NAME, ())
    facts: list[Word] = []
    for table in (queue.ask if queue else {}, planned.around.ask):
        facts += [word for word in table.get(NAME, ()) if word not in facts and word not in users]
    chunk = [word for word in (*facts, *users) if isinstance(word, str) and word.startswith(":")]
    free_words = [word for word in facts if word not in chunk]
    placed = any(isinstance(word, str) and word.startswith("-l place=") for word in (*free_words, *users))
    return (*layout(planned, plan, chunk, placed=placed), *free_words)


def layout(planned: PlannedStep, plan: Plan, chunk: Iterable[str], *, placed: bool) -> tuple[str, ...]:
    """One chunk a node, each on a node of its own, and the limits of the job, as options of qsub.

    `chunk` are words such as ":system=polaris" for each chunk; `placed`: somebody says -l place already.
    """
    launch = planned.step.launch
    parts = [
        str(launch.nodes),
        f"ncpus={launch.cpus_per_rank * launch.ranks_per_node}",
        f"mpiprocs={launch.ranks_per_node}",
    ]
    if launch.gpus_per_node and plan.cluster.launch.gpu_request != "none":
        parts.append(f"ngpus={launch.gpus_per_node}")
    if launch.memory_gb is not None:
        parts.append(f"mem={launch.memory_gb}gb")
    hours, minutes = divmod(limit(planned, plan) // 60, 60)
    mail = plan.run.resources.mail if planned.step.trains else ""
    return (
        f"-l select={':'.join(parts)}{''.join(chunk)}",
        *(() if placed or launch.nodes == 1 else ("-l place=scatter",)),
        f"-l walltime={hours:02}:{minutes:02}:{limit(planned, plan) % 60:02}",
        f"-o logs/{planned.name}.log",
        "-j oe",
        "-k doe",  # into the log itself, at once, behind what an earlier attempt wrote
        "-r y",
        *((f"-m {MAIL}", f"-M {mail}") if mail else ()),
    )


def limit(planned: PlannedStep, plan: Plan) -> int:
    """The seconds that the job may take: the run's for training, else the step's."""
    time = plan.run.resources.time
    return time.seconds if planned.step.trains and time else planned.step.minutes * 60


def split(words: tuple[Word, ...]) -> tuple[tuple[str, ...], tuple[Word, ...]]:
    """Words that may stand in a directive, and those from the first that may not, for argv: order is kept."""
    for index, word in enumerate(words):
        if not (isinstance(word, str) and _SAFE.match(word)):
            return tuple(w for w in words[:index] if isinstance(w, str)), words[index:]
    return tuple(w for w in words if isinstance(w, str)), ()


def option(word: Word) -> tuple[Word, ...]:
    """A fact's or a user's `-q debug` as the two words of argv that qsub needs."""
    if isinstance(word, Join) and isinstance(word.parts[0], str) and word.parts[0].startswith("-"):
        first, *free_words = (*option(word.parts[0]), *word.parts[1:])
        return first, Join(*free_words)
    return tuple(word.split(maxsplit=1)) if isinstance(word, str) and word.startswith("-") else (word,)


def submit(planned: PlannedStep, plan: Plan, argv: tuple[Word, ...]) -> Cmd:
    """The call; the tag is in name and variable, since sites rewrite or hide either."""
    run, tag = plan.run, Var("HPC_TAG")
    charged = plan.account_of(planned)
    account = ("-A", charged) if charged else ()
    users = (word for word in run.resources.ask.get(NAME, ()) if not word.startswith(":"))
    return Cmd(
        (
            *("bash", f"steps/{planned.name}/qsub.sh", planned.name),
            ",".join(dict.fromkeys((*EXPORT, *plan.cluster.exported))),
            *("-N", Join(f"{name_of(planned, plan)}.", tag), "-v", Join(f"{VARIABLE}={MARK}", tag)),
            Join("-Wdepend=", Var("HPC_AFTER")),
            *account,
            *(part for word in (*argv, *users) for part in option(word)),
        )
    )


def name_of(planned: PlannedStep, plan: Plan) -> str:
    """The job's name without its tag."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", f"{plan.run.name}.{planned.name}").lstrip("-")[:80]


def starter(planned: PlannedStep, per_node: int, count: int) -> tuple[Word, ...]:
    """The words that start `count` processes; one alone needs no mpiexec."""
    words = planned.around.starter.get(NAME, ())
    if count == 1 and not words:
        return ()
    script, cores = f"steps/{planned.name}/mpiexec.sh", planned.step.launch.cpus_per_rank
    return ("bash", script, str(per_node), str(count), str(cores), *words)


def job_lines(planned: PlannedStep, cluster: Cluster) -> tuple[str, ...]:
    """Who this job is and where."""
    launch = planned.step.launch
    suffix = re.sub(r"[^A-Za-z0-9_.-]", "", cluster.launch.interface_suffix)
    head = "127.0.0.1" if launch.nodes == 1 else f'$(hpc_head "{suffix}")'
    return (
        # PBS writes the cores of the whole chunk there, and every rank would start as many threads
        "unset OMP_NUM_THREADS NCPUS",
        f". steps/{planned.name}/pbs.sh",
        f"export HPC_JOB=$PBS_JOBID HPC_NODES={launch.nodes} HPC_GPUS={launch.gpus_per_node}",
        f"HPC_ATTEMPT=$(hpc_attempt) HPC_HEAD={head}",
        "export HPC_ATTEMPT HPC_HEAD",
    )


def rank_lines(planned: PlannedStep, cluster: Cluster) -> tuple[str, ...]:
    """The lines that export the numbers of a rank, and its own GPU where it shall see no other."""
    launch = planned.step.launch
    if not starter(planned, launch.ranks_per_node, launch.world):
        return ("export HPC_RANK=0 HPC_LOCAL_RANK=0 HPC_NODE_RANK=0 HPC_WORLD=1", *_gpu(launch, cluster))
    missing = "mpiexec gave this rank no number"
    return (
        f"export HPC_RANK=${{PMI_RANK:-${{PALS_RANKID:?{missing}}}}} HPC_WORLD={launch.world}",
        # both deal ranks out node by node, as many as --ppn says
        f"export HPC_LOCAL_RANK=$((HPC_RANK % {launch.ranks_per_node}))",
        f"export HPC_NODE_RANK=$((HPC_RANK / {launch.ranks_per_node}))",
        *_gpu(launch, cluster),
    )


def _gpu(launch: Launch, cluster: Cluster) -> tuple[str, ...]:
    variable = VISIBLE_GPUS.get(cluster.hardware.gpu_kind)
    if launch.visible != "one" or not launch.gpus_per_node or variable is None:
        return ()
    # PBS may have given the job a part of the node, and says so in the same variable
    return (
        f'IFS=, read -ra gpus <<<"${{{variable}:-}}"',
        f"export {variable}=${{gpus[HPC_LOCAL_RANK]:-$HPC_LOCAL_RANK}}",
    )
