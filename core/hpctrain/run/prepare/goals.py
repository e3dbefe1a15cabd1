"""The goals of commands that work on a compute node: one command, or a job that is held for people."""

from __future__ import annotations

from collections.abc import Sequence

from hpctrain.model.cluster import Cluster
from hpctrain.model.duration import Duration
from hpctrain.model.layer import File, Layer
from hpctrain.model.run import Asset, Resources, RunSpec
from hpctrain.model.step import Launch, Need, Ranks, Step
from hpctrain.model.words import Cmd, Join, Loc, Raw
from hpctrain.plan import queues
from hpctrain.plan.goal import DOCTOR, EXEC, SHELL, TUNNEL, Assets, Goal
from hpctrain.render.tree import helper
from hpctrain.run.prepare import editor

TARGET = frozenset({Need.TARGET, Need.GPU})
EDITOR = "editor"
"""The asset that a tunnel brings."""
ANSWERS = "answers"
"""The folder of what nodes answered."""
FOLDER = "runfile"
"""The role of the run file's own folder."""


def modest(requested: Resources, run: RunSpec, cluster: Cluster, time: Duration) -> Resources:
    """What a command asks for: what was said, else one node with as few GPUs as a job here has, for
    `time` or as long as the queue gives; never what the training asks for."""
    nodes = requested.nodes or (queues.nodes(requested, cluster) if requested.gpus else 1)
    usual = next((p.gpus for p in cluster.place if not p.here and p.gpus), 0)
    least = min(usual, cluster.hardware.gpus_per_node)
    is_size_open = requested.gpus is None and requested.nodes is None
    longest = queues.choose(cluster, nodes, time, requested.queue)
    if requested.time is None and longest and longest.max_time and longest.max_time < time:
        time = longest.max_time
    return Resources(
        nodes=nodes,
        gpus=requested.gpus or (least * nodes or None if is_size_open else None),
        time=requested.time or time,
        queue=requested.queue,
        account=run.resources.account,
        ask=run.resources.ask,
    )


def execute(argv: Sequence[str], resources: Resources, below: str = "") -> Goal:
    """One command in the run's environment, in the folder `below` that of the run file."""
    command = Cmd.of("env", Join("--chdir=", Loc(FOLDER, below)), *argv)

    # A log of its own, so that what the scheduler says is not among what the command said.
    apart = Layer(task=(Raw(f'exec >>"logs/{EXEC}.rank0.log" 2>&1'),), source="core")

    def step(_: object) -> Step:
        return Step(name=EXEC, commands=(command,), needs=TARGET, inside=True, layer=apart)

    return Goal(name=EXEC, step=step, resources=resources)


def shell(resources: Resources, title: str, below: str = "") -> Goal:
    """A job that waits for a terminal, and what the terminal then finds."""
    prompt = File(path="rc", body=(f"PS1='[{title}] \\w\\$ '\n",))
    scripts = tuple(File(path=name, body=(helper(name),)) for name in ("attach.sh", "hold.sh"))
    # What the job exported before its ranks: no secret, those are read in each task.
    keep = Raw(f'export -p >"steps/{SHELL}/job.env"')
    hold = Cmd.of("bash", f"steps/{SHELL}/hold.sh", Loc(FOLDER, below))

    def step(_: object) -> Step:
        return Step(
            name=SHELL,
            commands=(hold,),
            needs=TARGET,
            inside=True,
            files=(prompt, *scripts),
            layer=Layer(job=(keep,), source="core"),
        )

    return Goal(name=SHELL, step=step, resources=resources)


def tunnel(resources: Resources, archive: Asset, title: str, below: str = "") -> Goal:
    """A job that is an editor's server; the archive of its program is brought as any other asset."""
    script = File(path="tunnel.sh", body=(helper("tunnel.sh"),))

    def step(assets: Assets) -> Step:
        words = (assets[EDITOR], editor.tunnel_name(title), Loc(FOLDER, below))
        start = Cmd.of("bash", f"steps/{TUNNEL}/tunnel.sh", *words)
        return Step(name=TUNNEL, commands=(start,), needs=TARGET, inside=True, files=(script,))

    return Goal(
        name=TUNNEL,
        assets=lambda name: name == EDITOR,
        brings={EDITOR: archive},
        step=step,
        resources=resources,
    )


def examine(questions: str, resources: Resources) -> Goal:
    """One process on each node that asks it these questions; the answers lie in the folder of the step."""
    files = (
        File(path="questions.json", body=(questions,)),
        File(path="ask.sh", body=(helper("ask.sh"),)),
    )
    ask = Cmd.of(
        "bash", f"steps/{DOCTOR}/ask.sh", f"steps/{DOCTOR}/questions.json", f"steps/{DOCTOR}/{ANSWERS}"
    )

    def step(_: object) -> Step:
        launch = Launch(ranks=Ranks.PER_NODE)
        return Step(name=DOCTOR, commands=(ask,), needs=TARGET, files=files, launch=launch)

    return Goal(name=DOCTOR, env=False, step=step, resources=resources)
