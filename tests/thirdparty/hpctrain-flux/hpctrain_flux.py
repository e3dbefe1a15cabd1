"""`flux`: Flux, spoken to with flux batch, flux jobs and flux cancel."""

from __future__ import annotations

from collections.abc import Iterator

from hpctrain.plugin import (
    Binding,
    Cmd,
    Handover,
    Job,
    JobFiles,
    JobState,
    Join,
    NotReachable,
    Plan,
    PlannedStep,
    Problem,
    ProgramRunner,
    Ranks,
    Shape,
    State,
    SubmitError,
    Var,
    hookimpl,
    step_files,
)

HPCTRAIN_API = 1
SCHEDULER = "flux"
STATES = {
    "D": State.QUEUED,
    "S": State.QUEUED,
    "R": State.RUNNING,
    "CD": State.DONE,
    "F": State.FAILED,
    "CA": State.CANCELLED,
}
LIST = ("flux", "jobs", "-a", "-n")
ANY = range(-64, 256)


@hookimpl
def check_run(plan: Plan) -> Iterator[Problem]:
    """What this scheduler cannot do is refused by its name, not dropped."""
    for planned in plan.steps:
        if not planned.here and planned.step.launch.bind:
            message = "flux binds no GPUs to ranks"
            yield Problem(code="flux-bind", message=message, where="launch.bind", hint='bind = ""')
    if plan.run.resources.is_chain and plan.run.resources.requeue:
        message = "flux queues no job again: the training would end after one attempt"
        yield Problem(code="flux-requeue", message=message, where="resources.requeue", hint="requeue = false")


SUBMIT = """#!/bin/bash
# flux batch takes one --dependency for each job; HPC_AFTER has all of them.
set -euo pipefail
after=() rest=()
for word; do
  case $word in
    --after=*)
      word=${word#--after=}
      for dependency in ${word//,/ }; do after+=("--dependency=$dependency"); done
      ;;
    *) rest+=("$word") ;;
  esac
done
exec flux batch ${after[@]+"${after[@]}"} "${rest[@]}"
"""


@hookimpl
def render_job(step: PlannedStep, plan: Plan, binding: Binding) -> JobFiles:
    launch, resources, facts = step.step.launch, plan.run.resources, plan.cluster.launch
    seconds = resources.time.seconds if step.step.trains and resources.time else step.step.minutes * 60
    queue = plan.cluster.queue_named(step.queue)
    users = resources.ask.get(SCHEDULER, ())  # what is in them may be anything: never in a directive
    asked = (*(queue.ask.get(SCHEDULER, ()) if queue else ()), *step.around.ask.get(SCHEDULER, ()))
    gpus = 0 if facts.gpu_request == "none" else launch.gpus_per_node
    once = launch.ranks is Ranks.ONCE
    nodes = 1 if once else launch.nodes
    bind = ("-o=gpu-affinity=per-task",) if gpus and launch.visible == "one" else ()
    starter = (*bind, *step.around.starter.get(SCHEDULER, ()))
    account = plan.account_of(step)
    submit = Cmd.of(
        "bash",
        f"steps/{step.name}/submit.sh",
        Join("--job-name=hpc-", Var("HPC_TAG")),
        Join("--after=", Var("HPC_AFTER")),
        *((f"--setattr=bank={account}",) if account else ()),
        *users,
        f"steps/{step.name}/job.sh",
        Var("HPC_TAG"),
    )
    shape = Shape(
        tag='"${1:-}"',
        header=(
            f"# flux: --nodes={launch.nodes}",
            f"# flux: --cores={launch.cpus_per_rank * launch.ranks_per_node * launch.nodes}",
            *((f"# flux: --gpus-per-node={gpus}",) if gpus else ()),
            f"# flux: --time-limit={seconds}s",
            *((f"# flux: --signal=SIGUSR1@{min(120, seconds // 2)}s",) if step.step.trains else ()),
            f"# flux: --output=logs/{step.name}.log",
            *((f"# flux: --requires=mem{launch.memory_gb}",) if launch.memory_gb else ()),
            *(f"# flux: --env={name}" for name in ("HOME", "USER", *plan.cluster.exported)),
            *(f"# flux: {word}" for word in asked if word not in users),
        ),
        job=(
            f"export HPC_JOB=$FLUX_JOB_ID HPC_NODES={launch.nodes} HPC_GPUS={launch.gpus_per_node}",
            "export HPC_HEAD=$HOSTNAME HPC_ATTEMPT=0",
            'hpc_drop() { flux cancel "$@"; }',
        ),
        rank=(
            "export HPC_RANK=$FLUX_TASK_RANK HPC_LOCAL_RANK=$FLUX_TASK_LOCAL_ID",
            f"export HPC_NODE_RANK=$((FLUX_TASK_RANK / {launch.ranks_per_node})) HPC_WORLD={launch.world}",
        ),
        start=("flux", "run", f"--nodes={nodes}", f"--ntasks={launch.world}", *starter),
        start_nodes=("flux", "run", f"--nodes={launch.nodes}", f"--ntasks={launch.nodes}"),
        files={"submit.sh": SUBMIT},
        handover=Handover(
            submit=submit,
            find=(*LIST, "-o", "{id.f58}", Join("--name=hpc-", Var("HPC_TAG"))),
            id=r"(ƒ\w+)",
            refused="Invalid",
            unclear="timed out|Unable to connect",
        ),
    )
    return JobFiles(files=step_files(step, plan, binding, shape), submit=submit)


@hookimpl
def submit_job(job: Job, tools: ProgramRunner) -> str:
    done = tools.run(job.argv, cwd=job.directory, env=job.env, ok=ANY)
    if done.code == 0 and done.out.strip().startswith("ƒ"):
        return done.out.strip()
    # Only words that prove that no job exists are a refusal; of anything else core looks for the job.
    code = "refused" if "Invalid" in done.err else "submit-unclear"
    message = f"flux batch: {done.err.strip() or 'no answer'}"
    raise SubmitError(Problem(code=code, message=message, where=job.step))


@hookimpl
def query_jobs(ids: tuple[str, ...], tags: tuple[str, ...], tools: ProgramRunner) -> list[JobState]:
    """One call for all; a job that the scheduler has forgotten is left out."""
    done = tools.run((*LIST, "-o", "{id.f58} {name} {status_abbrev} {queue} {nnodes}"), ok=ANY)
    if done.code or any(len(line.split()) != 5 for line in done.out.splitlines()):
        raise _silent(done.err or done.out)
    jobs = [_state(*line.split()) for line in done.out.splitlines()]
    return [job for job in jobs if not (ids or tags) or job.id in ids or job.tag in tags]


def _state(ident: str, name: str, letter: str, queue: str, nodes: str) -> JobState:
    state = STATES.get(letter, State.UNKNOWN)
    tag = name.removeprefix("hpc-")
    words = (f"--queue={queue}",)
    return JobState(id=ident, state=state, tag=tag, name=name, queue_options=words, node_count=int(nodes))


@hookimpl
def cancel_jobs(ids: tuple[str, ...], tools: ProgramRunner) -> bool:
    for ident in ids:
        done = tools.run(("flux", "cancel", ident), ok=ANY)
        if done.code and "inactive" not in done.err and "unknown job" not in done.err:
            raise _silent(done.err or done.out)
    return True


def _silent(text: str) -> NotReachable:
    notes = tuple(text.splitlines()[-1:])
    return NotReachable(Problem(code="scheduler-silent", message="flux does not answer", notes=notes))
