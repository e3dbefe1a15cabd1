"""What a training of several jobs adds to its step's scripts, and what becomes of its checkpoints."""

from __future__ import annotations

import json

from hpctrain.model.plan import Binding, Plan, PlannedStep
from hpctrain.model.step import Launch
from hpctrain.model.words import Join, Var, Word, words_in
from hpctrain.plan import chain, interval
from hpctrain.plan.tokens import OWN_NAME
from hpctrain.render import shell
from hpctrain.render.graph import AVOID
from hpctrain.render.shape import Guards, Handover, Shape
from hpctrain.versions import RECORD


def chain_of(planned: PlannedStep, plan: Plan) -> chain.Chain | None:
    """The chain that the step is trained by, where several jobs do it."""
    return chain.of(plan) if planned.name == chain.TRAIN else None


def over(folder: str) -> tuple[str, ...]:
    """Lines of job.sh, first: nothing where the chain has ended."""
    return (f'[[ ! -e {folder}/ended ]] || {{ echo "its chain has ended: $(<{folder}/ended)"; exit 0; }}',)


def begins(plan: Plan, binding: Binding) -> tuple[str, ...]:
    """Lines of job.sh, before anything trains: whether this attempt does."""
    place = chain.stop_place(plan)
    stop = Join(place, OWN_NAME) if place else ""
    return (f"export HPC_STOP_FILE={shell.word(stop, binding)}", "hpc_chain_begin")


def chain_files(planned: PlannedStep, plan: Plan, binding: Binding, shape: Shape) -> dict[str, str]:
    """chain.json; and next.sh where the chain's jobs hand over others."""
    folder, launch, handover = f"steps/{planned.name}", planned.step.launch, shape.handover
    links = chain.of(plan)
    if handover is None or links is None or not links.hands_over:
        return {f"{folder}/chain.json": _terms(plan, launch, None, shape.guards)}
    argv = tuple(word for word in handover.submit.argv if AVOID not in words_in(word))  # `avoid` follows
    lines = [
        "#!/bin/bash",
        "# One more job of the chain, HPC_TAG: submit it behind HPC_AFTER, or find it.",
        "set -euo pipefail",
        'cd "$HPC_RUN"',
        "case $1 in",
        f"  submit) exec {shell.words(argv, binding)} ;;",
        f"  find) exec {shell.words(handover.find, binding)} ;;",
        "esac",
    ]
    terms = _terms(plan, launch, handover, shape.guards)
    return {f"{folder}/chain.json": terms, f"{folder}/next.sh": shell.script(lines)}


def _terms(plan: Plan, launch: Launch, handover: Handover | None, guards: Guards | None) -> str:
    """chain.json: what the chain's judge is told in the job."""
    links, layout = chain.of(plan), plan.train.checkpoints if plan.train else None
    assert links is not None
    terms: dict[str, object] = {
        "total": links.total.seconds,
        "time": links.time.seconds,
        "links": links.links,
        "avoid": links.avoid,
        "requeue": links.requeue,
        **interval.patience(plan.run.checkpoint.every, interval.assumed_between(launch)),
        "checkpoints": {"folder": layout.folder, "name": layout.name, "complete": layout.complete}
        if layout
        else None,
    }
    if guards is not None:
        terms["guards"] = guards.terms(launch)
    if handover is not None:
        terms["handover"] = {
            "environ": [*handover.environ, *plan.cluster.exported],
            "id": handover.id,
            "refused": handover.refused,
            "unclear": handover.unclear,
        }
    return json.dumps({"v": RECORD, **terms}, indent=1, ensure_ascii=False) + "\n"


def saves(planned: PlannedStep, plan: Plan, binding: Binding) -> tuple[str, ...]:
    """What becomes of the training's checkpoints: checked before the ranks, looked after beside them."""
    layout = plan.train.checkpoints if plan.train else None
    if layout is None or planned.name != chain.TRAIN:
        return ()
    root, goes_on = Var("HPC_CHECKPOINTS"), plan.run.checkpoint.resume != "never"
    words: list[Word] = [Join(root, f"/{layout.folder}") if layout.folder else root, f"--name={layout.name}"]
    words += [f"--last={layout.complete}"] if layout.complete else []
    words += [f"--pointer={layout.pointer}"] if layout.pointer else []
    # an attempt that begins anew saves steps that are older than what is there
    words += [f"--keep={plan.run.checkpoint.keep}"] if plan.run.checkpoint.keep and goes_on else []
    functions = {"hpc_check_saves": goes_on, "hpc_watch_saves": not layout.manifests}
    text = shell.words(tuple(words), binding)
    return tuple(f"{function} {text}" for function, is_wanted in functions.items() if is_wanted)
