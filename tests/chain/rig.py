"""A run of several jobs on a real scheduler: rendered, submitted and watched as the product does."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import attrs

from hpctrain.hooks.manager import Hooks
from hpctrain.model.cluster import Queue
from hpctrain.model.duration import Duration
from hpctrain.model.job import JobFiles, State
from hpctrain.model.plan import Binding, Plan, PlannedStep
from hpctrain.model.run import Checkpoint, Resources
from hpctrain.model.train import Layout, Train
from hpctrain.render.tree import Sources, tree
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.live import LiveRun, scheduler_hooks
from hpctrain.run.prepare import jobzip
from hpctrain.run.steps.executor import Outcome
from hpctrain.run.steps.status import StepState
from hpctrain_job import metrics
from hpctrain_job.attempts import Step
from hpctrain_job.chain.decision import Attempt
from tests.patience import wait_for
from tests.schedulers import build

PROGRAM = Path(__file__).with_name("program.py").read_text()
LAYOUT = Layout(format="hf", name=r"step-(?P<step>\d+)", complete="state.json")


def plan(
    scheduler: str,
    script: str,
    *,
    total: str,
    time: str,
    nodes: int = 1,
    machine: int = 2,
    jobs: int | None = None,
    requeue: bool | None = None,
    spares: int | None = None,
    saves: Layout = LAYOUT,
    keep: int | None = None,
) -> Plan:
    """A plan whose one step trains with a line of bash."""
    row = Queue(name="batch", source="s", ask={"slurm": ("--partition=batch",)}, jobs_per_user=jobs)
    site = build.cluster()
    site = attrs.evolve(
        site, scheduler=scheduler, queue=(row,), hardware=attrs.evolve(site.hardware, nodes=machine),
        policy=attrs.evolve(site.policy, poll_seconds=0),
    )  # fmt: skip
    layout = build.many(per_node=1, nodes=nodes) if nodes > 1 else {}
    layout |= {"spare_nodes": spares} if spares else {}
    made = build.plan(build.step(script, trains=True, **layout), on=site, time=time, scheduler=scheduler)
    resources: Resources = attrs.evolve(
        made.run.resources, total=Duration.parse(total), requeue=requeue, spare_nodes=spares
    )
    return attrs.evolve(
        made,
        run=attrs.evolve(made.run, resources=resources, checkpoint=Checkpoint(keep=keep)),
        train=Train(argv=("true",), checkpoints=saves),
    )


@attrs.frozen
class ChainRun:
    """One run with its folder; `live` is what `status`, `continue` and `cancel` use."""

    live: LiveRun

    @classmethod
    def create(
        cls, root: Path, planned: Plan, environ: dict[str, str], python: str = sys.executable
    ) -> ChainRun:
        """Write the run's directory below `root`, as `submit` does."""
        scheduler = planned.cluster.scheduler
        environ = {"HOME": str(root), "USER": "root", **environ}
        hooks: Hooks = scheduler_hooks(scheduler, environ)
        bound = attrs.evolve(build.binding(root), python=python)

        def render(step: PlannedStep, plan: Plan, binding: Binding) -> JobFiles:
            files: JobFiles = hooks.need("render_job", step=step, plan=plan, binding=binding)
            return files

        contents = tree(planned, bound, render, Sources(run_file="", code=jobzip.build().data))
        contents["program.py"] = PROGRAM
        directory = RunDirectory.create(root / "runs", planned.run.name, planned.digest, contents)
        return cls(LiveRun.open(directory, environ))

    @property
    def path(self) -> Path:
        return self.live.directory.path

    @property
    def step(self) -> Step:
        return Step(self.path, "train")

    def submit(self) -> Outcome:
        return self.live.execute(lambda *_: None)

    def state(self) -> StepState:
        (step,) = self.live.status().steps
        return step

    def until(self, *states: State, seconds: float) -> StepState:
        """Wait for one of these states of the step."""
        wait_for(f"{[s.value for s in states]}: {self.log()}", lambda: self.state().state in states, seconds)
        return self.state()

    def log(self) -> str:
        path = self.path / "logs/train.log"
        return path.read_text() if path.exists() else ""

    def rows(self) -> list[dict[str, Any]]:
        return metrics.read(self.path / "metrics.jsonl")

    def attempts(self) -> tuple[Attempt, ...]:
        """All attempts, once the last has written its end: the exit record is there a moment before."""
        wait_for("the last attempt's end", lambda: not self.step.record().attempts[-1].is_open, 20)
        return self.step.record().attempts

    def submitted(self) -> tuple[str, ...]:
        return self.step.submitted()


def environ(bin_folder: Path | None = None) -> dict[str, str]:
    """What a user's shell has."""
    path = os.environ["PATH"]
    return {"PATH": f"{bin_folder}:{path}" if bin_folder else path}
