"""Every file of a run directory: pure, so that `submit`, `eject` and the tests see the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from hpctrain.model.job import JobFiles
from hpctrain.model.names import GRAPH, PLAN
from hpctrain.model.plan import Binding, Plan, PlannedStep
from hpctrain.model.step import Need, Step
from hpctrain.model.words import Cmd, Secret
from hpctrain.plan import chain
from hpctrain.plan.encode import encode
from hpctrain.render.chain_scripts import chain_of
from hpctrain.render.graph import Avoid, Links, Node, avoids, nodes_text
from hpctrain.render.run_sh import run_sh
from hpctrain.render.scripts import step_files
from hpctrain.render.shape import HERE
from hpctrain.versions import RECORD

Render = Callable[[PlannedStep, Plan, Binding], JobFiles]
HELPERS = ("identity.sh", "publish.sh", "job.sh")


@frozen(kw_only=True)
class Sources:
    """What goes into the directory as it is: the run file, its lock, the code that travels."""

    run_file: str
    lock: str = ""
    code: bytes = b""
    secrets: Mapping[str, object] = attrs.field(factory=dict)
    """The table of secrets in the user's settings: where each is kept."""


def tree(plan: Plan, binding: Binding, render: Render, sources: Sources) -> dict[str, str | bytes]:
    """All files by their path in the run directory."""
    contents: dict[str, str | bytes] = {
        "run.toml": sources.run_file,
        PLAN: plan_json(plan),
        "code/job.zip": sources.code,
        **{f"code/{name}": helper(name) for name in HELPERS},
    }
    if sources.lock:
        contents["run.lock.toml"] = sources.lock
    nodes = []
    for planned in plan.steps:
        files, node = _step(planned, plan, binding, render)
        contents |= files
        nodes.append(node)
    contents[GRAPH] = nodes_text(plan, nodes, binding)
    contents["run.sh"] = run_sh(plan, nodes, binding, sources.secrets)
    return contents


def plan_json(plan: Plan) -> str:
    """The plan that this run keeps for its whole life; it is never planned again."""
    document: Mapping[str, Any] = {
        "schema": f"hpctrain/plan/{RECORD}",
        "digest": plan.digest,
        "plugins": list(plan.plugins),
        "run": encode(plan.run),
        "cluster": plan.cluster.name,
        "pins": encode(plan.pins),
        "steps": encode(plan.steps),
        "train": encode(plan.train),
        "peak_tflops": plan.cluster.hardware.peak_tflops,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def helper(name: str) -> str:
    """A bash helper that ships with core."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _step(
    planned: PlannedStep, plan: Plan, binding: Binding, render: Render
) -> tuple[Mapping[str, str], Node]:
    step, links = planned.step, _links(planned, plan)
    node = Node(
        name=step.name,
        here=planned.here,
        waits=planned.waits or _follows_chain(planned, plan),
        links=links,
        after=step.after,
        makes=step.makes.loc if step.makes else None,
        checked=bool(step.makes and step.makes.checked),
        origin=_origin(step),
        secrets=tuple(sorted({v.value.name for v in planned.around.env if isinstance(v.value, Secret)})),
    )
    if planned.here:
        return step_files(planned, plan, binding, HERE), node
    rendered = render(planned, plan, binding)
    return rendered.files, attrs.evolve(
        node, submit=rendered.submit, avoid=_avoid(planned, plan, rendered.submit)
    )


def _avoid(planned: PlannedStep, plan: Plan, submit: Cmd) -> Avoid | None:
    """What is known of its nodes, where the scheduler takes that."""
    place, most = chain.bad_nodes_place(plan.cluster), chain.most_avoided(plan, planned.step.launch.job_nodes)
    if place is None or not avoids(submit):
        return None
    return Avoid(place=place, most=most, shared=bool(chain.shared_role(plan.cluster)))


def _links(planned: PlannedStep, plan: Plan) -> Links | None:
    links = chain_of(planned, plan)
    return Links(attempts=links.attempts, most=links.links, stop=chain.stop_place(plan)) if links else None


def _follows_chain(planned: PlannedStep, plan: Plan) -> bool:
    """Whether it comes behind several jobs: which of them will be the last, no scheduler knows before."""
    return any(edge.step == chain.TRAIN for edge in planned.step.after) and chain.of(plan) is not None


def _origin(step: Step) -> str:
    """Where the network brings an asset from: hub, url, git; nothing for all other steps."""
    fetched = step.makes is not None and step.makes.role == "assets" and Need.NETWORK in step.needs
    return step.makes.name if fetched and step.makes else ""
