"""Rendered by core, written as a run, run here: publishing, secrets and the exit record fit together."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from hpctrain.errors import StepFailed
from hpctrain.model.cluster import Cluster, Storage
from hpctrain.model.layer import EnvVar
from hpctrain.model.plan import Plan, PlannedStep, Surround
from hpctrain.model.run import RunSpec
from hpctrain.model.step import Artifact, Step
from hpctrain.model.words import Cmd, Secret, Var
from hpctrain.render.scripts import step_files
from hpctrain.render.shape import HERE
from hpctrain.render.tree import HELPERS
from hpctrain.run.disk import secrets
from hpctrain.run.disk.directory import RunDirectory
from hpctrain.run.prepare import jobzip
from hpctrain.run.prepare.bind import bind
from hpctrain.run.prepare.survey import survey
from hpctrain.run.steps.execute import run_step
from hpctrain.run.system.tools import Tools
from tests.conftest import ROOT

TOKEN = "hf_" + "Zz9" * 12
MADE = Artifact(name="thing", role="env", inputs={"x": 1}, arch="any", folder="deep er")


def rendered(cluster: Cluster, root: Path, *commands: Cmd) -> tuple[RunDirectory, Plan]:
    """A run of one step that makes something with a token."""
    roles = ("env", "state", "checkpoints")
    storage = {role: Storage(path=str(root / "a b" / role), source="doc") for role in roles}
    cluster = attrs.evolve(cluster, name="local", storage=storage)
    run = RunSpec(name="demo", cluster="local")
    step = Step(name="make", commands=commands, makes=MADE)
    token = EnvVar(name="HF_TOKEN", value=Secret("huggingface"), why="the model is gated")
    planned = PlannedStep(step=step, here=True, around=Surround(env=(token,)))
    plan = Plan(run=run, cluster=cluster, pins=(), steps=(planned,), digest="4f1c9a2e" * 8)
    binding = bind(cluster, run, {"USER": "ada", "HOME": "/nowhere"})
    helpers = {f"code/{n}": (ROOT / "core/hpctrain/render" / n).read_text() for n in HELPERS}
    contents: dict[str, str | bytes] = {"plan.json": "{}", "code/job.zip": jobzip.build().data}
    contents |= helpers | step_files(planned, plan, binding, HERE)
    return RunDirectory.create(root / "runs", "demo", plan.digest, contents), plan


def run_here(directory: RunDirectory, plan: Plan) -> None:
    binding = bind(plan.cluster, plan.run, {"USER": "ada", "HOME": "/nowhere"})
    folder = Path(str(binding.roots["state"]), "secrets", f"demo-{directory.own_name}")
    secrets.place([secrets.Token("huggingface", TOKEN, "$HF_TOKEN")], folder, directory, "make")
    run_step(directory, "make", Tools(), env={})


def test_a_step_makes_publishes_and_forgets_its_token(cluster: Cluster, tmp_path: Path) -> None:
    copy = Cmd.of("bash", "-c", 'printf %s "${#HF_TOKEN}" >"$WORK"; echo "$CANARY-"')
    directory, plan = rendered(cluster, tmp_path, copy)
    binding = bind(plan.cluster, plan.run, {"USER": "ada", "HOME": "/nowhere"})
    assert not survey(plan, binding).artifact_exists["make"]
    with pytest.MonkeyPatch.context() as shell:
        shell.setenv("CANARY", "1")
        run_here(directory, plan)
    link = tmp_path / "a b" / "env" / MADE.loc.path
    assert link.read_text() == str(len(TOKEN))
    assert survey(plan, binding).artifact_exists["make"]
    assert directory.finished("make")
    assert json.loads((directory.step("make") / "exit").read_text())["code"] == 0
    assert directory.log("make").read_text().splitlines()[-1] == "-"
    assert not any(TOKEN in p.read_text("latin-1") for p in tmp_path.rglob("*") if p.is_file())
    run_step(directory, "make", Tools(), env={})
    assert directory.record.read()[-1]["code"] == 0


def test_a_step_that_fails_publishes_nothing_and_leaves_nothing(cluster: Cluster, tmp_path: Path) -> None:
    directory, plan = rendered(cluster, tmp_path, Cmd.of("mkdir", Var("WORK")), Cmd.of("false"))
    with pytest.raises(StepFailed, match="step make of demo/1 ended with exit code 1"):
        run_here(directory, plan)
    assert [p for p in (tmp_path / "a b").rglob("*") if not p.is_dir() or "hpc" in p.name] == []
    assert not directory.finished("make")
    assert json.loads((directory.step("make") / "exit").read_text())["code"] == 1
