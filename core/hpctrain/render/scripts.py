"""The scripts of one step, the same for every scheduler but for what its Shape says.

job.sh runs where the scheduler starts it, rank.sh once per rank outside the environment, task.sh
inside of it. Nothing is nested in quotes: each script starts the next by its path.
"""

from __future__ import annotations

from collections.abc import Iterable

from hpctrain.model.layer import EnvVar, File, Scope
from hpctrain.model.plan import Binding, Plan, PlannedStep
from hpctrain.model.words import Cmd, Join, Loc, Secret, Var, Word
from hpctrain.plan import chain, tokens
from hpctrain.plan.tokens import OWN_NAME
from hpctrain.render import chain_scripts, files, shell, vetting
from hpctrain.render.graph import avoids
from hpctrain.render.shape import Shape

JOB_ZIP = "$HPC_RUN/code/job.zip"
PULSE = "hpctrain_job/hangs/hook"
"""Where in it Python finds what begins the pulse of a rank."""

_PLACED = 'echo "hpctrain: rank $HPC_RANK on $HOSTNAME, job $HPC_JOB, attempt $HPC_ATTEMPT"'
"""Where a rank runs, for people and for `logs --node`."""


def step_files(planned: PlannedStep, plan: Plan, binding: Binding, shape: Shape) -> dict[str, str]:
    """Every file of a step, by its path in the run directory."""
    folder = f"steps/{planned.name}"
    texts = {
        f"{folder}/job.sh": job(planned, plan, binding, shape),
        f"{folder}/rank.sh": rank(planned, binding, shape, on_hang(planned, plan)),
        f"{folder}/task.sh": task(planned, binding, watched=bool(on_hang(planned, plan))),
    }
    if planned.around.node:
        texts[f"{folder}/node.sh"] = node(planned, binding, shape)
    if shape.vetting and vetting.is_wanted(planned, plan):
        texts |= shape.vetting.scripts(planned, plan, binding, shape.rank, JOB_ZIP)
    if chain_scripts.chain_of(planned, plan):
        texts |= chain_scripts.chain_files(planned, plan, binding, shape)
        texts |= shape.guards.scripts(planned.name, shape.node, JOB_ZIP) if shape.guards else {}
    for file in _files(planned):
        if not files.is_late(file, binding):
            texts[f"{folder}/{file.path}"] = files.text(file, binding)
    return texts | {f"{folder}/{path}": text for path, text in shape.files.items()}


def on_hang(planned: PlannedStep, plan: Plan) -> str:
    """What the watch beside the ranks of the training does when they hang; empty: there is none."""
    choice = plan.run.resources.on_hang or "say"
    return choice if planned.name == chain.TRAIN and choice != "off" else ""


def job(planned: PlannedStep, plan: Plan, binding: Binding, shape: Shape) -> str:
    """job.sh: prologue, modules, variables, ranks, publishing."""
    around, step, folder = planned.around, planned.step, f"steps/{planned.name}"
    about = shell.comment(f"step {step.name} of {plan.run.name} on {plan.cluster.name}")
    lines = [
        "#!/bin/bash",
        *shape.header,
        f"# {about}, plan {plan.digest[:8]}; starts in the run directory",
        "set -euo pipefail",
        "umask 077",
        *shape.begin,
        f"export HPC_STEP={shell.quoted(step.name)}",
        f"[[ ! -e {folder}/finished ]] || {{ echo 'step {step.name} is finished'; exit 0; }}",
        *(chain_scripts.over(folder) if chain_scripts.chain_of(planned, plan) else ()),
        *shape.job,
        ". code/identity.sh",
        ". code/publish.sh",
        ". code/job.sh",
        *([f"hpc_claim {shape.tag}"] if shape.tag else []),
        "hpc_begin_job",
        *([f"hpc_notice {shape.notice}"] if shape.notice else []),
        *_outer(plan, binding, shape, secrets=_uses_secrets(around.env)),
        *(['mkdir -p "$HPC_CHECKPOINTS"'] if step.trains else []),
        *(chain_scripts.begins(plan, binding) if chain_scripts.chain_of(planned, plan) else ()),
        *chain_scripts.saves(planned, plan, binding),
        *map(shell.module, around.modules),
        *_variables(around.env, Scope.JOB, binding),
        *_late_files(planned, folder, binding),
        *(shell.line(value, binding) for value in around.job),
    ]
    if step.makes is not None:
        link = shell.word(step.makes.loc, binding)
        check_function = "hpc_sound" if step.makes.checked else "hpc_exists"
        lines += [
            *_shared(step.makes.role, plan, binding),
            f'if {check_function} {link}; then echo "exists: "{link}; exit 0; fi',
            f"hpc_begin {link}",
        ]
    if shape.vetting and vetting.is_wanted(planned, plan):
        lines += shape.vetting.lines(planned, binding)
    if around.node:
        lines.append("hpc_start " + _start(shape.start_nodes, f"{folder}/node.sh", binding))
    lines += _training(planned, plan, binding, shape)
    if step.makes is not None:
        lines += [f"hpc_publish {shell.word(step.makes.loc, binding)}", "unset WORK"]
    return shell.script(lines)


def _training(planned: PlannedStep, plan: Plan, binding: Binding, shape: Shape) -> tuple[str, ...]:
    """What starts the ranks."""
    folder, prefix = f"steps/{planned.name}", planned.step.launch.prefix
    plain = "hpc_start " + _start((*prefix, *shape.start), f"{folder}/rank.sh", binding)
    if shape.guards is None or not chain_scripts.chain_of(planned, plan):
        return (plain,)
    return shape.guards.training(_start((*prefix, *shape.guards.start), f"{folder}/guard.sh", binding), plain)


def node(planned: PlannedStep, binding: Binding, shape: Shape) -> str:
    """node.sh: what must happen once on each node, outside the environment."""
    return shell.script(
        [
            "#!/bin/bash",
            "set -euo pipefail",
            'cd "$HPC_RUN"',
            *shape.node,
            *_variables(planned.around.env, Scope.NODE, binding),
            *(shell.line(value, binding) for value in planned.around.node),
        ]
    )


def rank(planned: PlannedStep, binding: Binding, shape: Shape, response: str = "") -> str:
    """rank.sh: who this rank is, its log, and the way into the environment."""
    step = planned.step
    log = [f'exec >>"logs/{step.name}.rank$HPC_RANK.log" 2>&1', _PLACED] if step.launch.world > 1 else []
    wrap = shell.words((*step.launch.rank_prefix, *planned.around.wrap), binding)
    enter = f"{wrap} bash" if wrap else "bash"
    return shell.script(
        [
            "#!/bin/bash",
            "set -euo pipefail",
            'cd "$HPC_RUN"',
            *shape.rank,
            *_variables(planned.around.env, Scope.NODE, binding),
            *(_watch(step.name, response) if response else ()),
            *log,
            f"exec {enter} steps/{step.name}/task.sh",
        ]
    )


def task(planned: PlannedStep, binding: Binding, *, watched: bool = False) -> str:
    """task.sh: the variables of the task, then the commands; the last one takes the shell's place
    so that signals reach it."""
    around, step = planned.around, planned.step
    commands = [shell.line(value, binding) for value in step.commands]
    search = f"{JOB_ZIP}:{JOB_ZIP}/{PULSE}" if watched else JOB_ZIP
    if commands and isinstance(step.commands[-1], Cmd) and step.commands[-1].cwd is None:
        commands[-1] = f"exec {commands[-1]}"
    return shell.script(
        [
            "#!/bin/bash",
            "set -euo pipefail",
            'cd "$HPC_RUN"',
            *_variables(around.env, Scope.TASK, binding),
            f'export PYTHONPATH="{search}${{PYTHONPATH:+:$PYTHONPATH}}"',
            *(shell.line(value, binding) for value in around.task),
            *commands,
        ]
    )


def _watch(step: str, response: str) -> tuple[str, ...]:
    """The watch of a node, beside its first rank and none of its children; pulses are written to memory."""
    return (
        'export HPC_PULSE="/dev/shm/hpctrain-$UID-$HPC_JOB.$HPC_ATTEMPT.$HPC_NODE_RANK"',
        "if ((HPC_LOCAL_RANK == 0)); then",
        f'  (PYTHONPATH={JOB_ZIP} "$HPC_PYTHON" -m hpctrain_job.hangs.watch --parent=$$ \\',
        f"    --on-hang={response} ${{HPC_HANG_TERMS:-}} </dev/null >>steps/{step}/watch.log 2>&1 &)",
        "fi",
    )


def _outer(plan: Plan, binding: Binding, shape: Shape, *, secrets: bool) -> list[str]:
    """The variables that core itself gives to every job."""
    checkpoints = Join(Loc("checkpoints", plan.run.name), "/", OWN_NAME)
    variables: dict[str, Word] = {"HPC_CHECKPOINTS": checkpoints}
    if secrets:
        variables["HPC_SECRETS"] = tokens.folder_in_job(plan.run.name, Var("HPC_STEP"))
    if shape.handover and avoids(shape.handover.submit):
        variables |= chain.bad_nodes_words(plan.cluster)
    if is_known := "/" in binding.python:
        variables["HPC_PYTHON"] = binding.python
    lines = [f"export {key}={shell.word(value, binding)}" for key, value in variables.items()]
    return lines if is_known else [*lines, "hpc_python"]


def _shared(role: str, plan: Plan, binding: Binding) -> list[str]:
    """How the role's file system wants to be written to. A shared role's artifacts are readable by the
    project; those of others are used only from accepted owners."""
    storage = plan.cluster.storage.get(role)
    if storage is None:
        return []
    owners = [word for owner in plan.cluster.owners_of(role) for word in (" ", owner)][1:]
    variables: dict[str, Word] = {
        "HPC_STRIPE": storage.stripe,
        "HPC_SHARE": "project" if storage.share == "project" else "",
        "HPC_OWNERS": Join(*owners) if owners else "",
    }
    return [f"export {name}={shell.word(value, binding)}" for name, value in variables.items() if value]


def _files(planned: PlannedStep) -> tuple[File, ...]:
    return (*planned.around.files, *planned.step.files)


def _late_files(planned: PlannedStep, folder: str, binding: Binding) -> list[str]:
    late = (file for file in _files(planned) if files.is_late(file, binding))
    return [line for file in late for line in files.written_by_job(f"{folder}/{file.path}", file, binding)]


def _uses_secrets(env: Iterable[EnvVar]) -> bool:
    return any(isinstance(var.value, Secret) for var in env)


def _variables(env: Iterable[EnvVar], at: Scope, binding: Binding) -> list[str]:
    return [shell.variable(var, binding) for var in env if var.at is at]


def _start(starter: tuple[Word, ...], script: str, binding: Binding) -> str:
    return f"{shell.words(starter, binding)} bash {script}".lstrip()
