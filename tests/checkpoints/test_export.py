"""`[checkpoint] export`: planned on every cluster, and carried out from the job's zip alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import numpy as np
import pytest

from hpctrain.errors import fatal
from hpctrain.model.step import Step
from hpctrain.model.train import Layout
from hpctrain.model.words import Cmd, Join, Var, Word
from hpctrain.render.files import text
from hpctrain.render.shell import plain
from hpctrain.run.prepare import jobzip
from hpctrain.session import Session
from hpctrain.testing.audit import watched
from hpctrain_job.resume import write_manifest
from hpctrain_plugins.checkpoints import registry
from hpctrain_plugins.checkpoints.export import planned
from hpctrain_trl.settings import CHECKPOINT, CHECKPOINT_LAST
from tests.checkpoints.conftest import TorchRun, read_safetensors
from tests.checkpoints.models import GPT_NEOX, make
from tests.clusters import HOMES, ROOT, read
from tests.clusters.workspace import installed_workspace
from tests.trainers.plans import BINDING

CLUSTERS = ("local", *sorted(HOMES))
DEMO = ROOT / "plugins/hpctrain_plugins/local/demo/run.toml"
LAYOUT = Layout(format="hf", folder="deep er", name=r"step_(?P<step>\d+)", complete="done")
NEWEST = Join(Var("HPC_CHECKPOINTS"), "/newest")


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[None]:
    """The members of the workspace as if their wheels were installed."""
    with installed_workspace(tmp_path / "site"):
        yield


def session(tmp_path: Path, cluster: str, *sets: str) -> Session:
    environ = {"USER": "ada", "HOME": str(tmp_path)}
    return Session(DEMO, on=cluster, sets=['resources.account="project"', *sets], environ=environ)


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("target", ["hf", "neox"])
def test_it_is_a_job_behind_the_training(tmp_path: Path, cluster: str, target: str) -> None:
    plan = session(tmp_path, cluster, f'checkpoint.export="{target}"').plan()
    assert fatal(plan.problems) == ()
    export = plan.step_named("export")
    assert export is not None
    assert (export.here, export.waits) == (False, False)
    assert [after.step for after in export.step.after] == ["train"]
    assert export.step.source == "converters:checkpoints"
    assert any(var.name == "PATH" for var in export.around.env) or export.around.wrap
    place = plan.cluster.place_named(export.step.place)
    assert place is not None
    assert place.max_minutes is None or export.step.minutes <= place.max_minutes


@pytest.mark.usefixtures("workspace")
def test_nothing_is_loaded_where_nothing_is_exported(tmp_path: Path) -> None:
    plugins = session(tmp_path, "local", 'checkpoint.export=""').plan().plugins
    assert not [name for name in plugins if name.startswith("converters:")]


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize("target", ["peft", "onnx"])
def test_a_format_that_nobody_writes_is_a_warning(tmp_path: Path, target: str) -> None:
    plan = session(tmp_path, "local", f'checkpoint.export="{target}"').plan()
    assert [(p.code, p.fatal) for p in plan.problems if p.where == "checkpoint.export"] == [
        ("no-converter", False)
    ]
    assert plan.step_named("export") is None


def test_the_hook_knows_what_is_only_read_and_touches_nothing() -> None:
    assert {n for n in registry.names() if not hasattr(registry.load(n), "plan")} == {*planned.READ_ONLY}
    with watched() as seen:
        assert planned.convert_checkpoint("peft", "hf", NEWEST, LAYOUT)
    assert not seen.acts


@pytest.fixture
def exported(tmp_path: Path) -> Step:
    return packed(planned.convert_checkpoint("hf", "neox", NEWEST, LAYOUT), tmp_path)


def packed(found: list[Step] | None, tmp_path: Path) -> Step:
    """The one step of an answer, with the files that its run directory would hold."""
    assert found is not None
    (step,) = found
    (tmp_path / "job.zip").write_bytes(jobzip.build(step.code).data)
    (file,) = step.files
    (tmp_path / "steps/export").mkdir(parents=True)
    (tmp_path / "steps/export" / file.path).write_text(text(file, BINDING))
    return step


def carried_out(step: Step, folder: Path, python: str) -> subprocess.CompletedProcess[str]:
    """The step's own command, the zip first on the path, as task.sh runs it."""
    (command,) = step.commands
    assert isinstance(command, Cmd)
    here = {"HPC_CHECKPOINTS": str(folder / "ck"), "HPC_RUN": str(folder), "HPC_STEP": step.name}
    words = [_bound(word, here) for word in command.argv]
    env = {**here, "PATH": os.environ["PATH"], "PYTHONPATH": str(folder / "job.zip")}
    return subprocess.run(
        [python, *words[1:]], env=env, capture_output=True, text=True, cwd=folder, timeout=60
    )


def _bound(word: Word, here: Mapping[str, str]) -> str:
    if isinstance(word, Join):
        return "".join(_bound(part, here) for part in word.parts)
    return here[word.name] if isinstance(word, Var) else plain(word, BINDING)


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """A Python with nothing but numpy, where attrs and hpctrain cannot be imported."""
    place = tmp_path / "bare"
    venv.create(place, symlinks=True)
    (site,) = place.glob("lib/python*/site-packages")
    packages = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        (site / name).symlink_to(packages / name)
    python = str(place / "bin/python")
    assert subprocess.run([python, "-c", "import attr"], capture_output=True, timeout=60).returncode
    return python


def test_it_runs_from_the_zip_where_only_numpy_is(exported: Step, tmp_path: Path, bare: str) -> None:
    steps = tmp_path / "ck/deep er"
    steps.mkdir(parents=True)
    for number, last in ((5, True), (10, True), (15, False)):
        folder = make(steps / f"step_{number}", GPT_NEOX)
        if last:
            (folder / "done").write_text("")
            write_manifest(folder)
    done = carried_out(exported, tmp_path, bare)
    assert done.returncode == 0, done.stderr
    assert "round trip exact" in done.stdout
    out = tmp_path / "ck/neox/step_10"
    said = json.loads((out / "conversion.json").read_text())
    assert (said["source_format"], said["target_format"], said["verified"]) == ("hf", "neox", "roundtrip")
    again = carried_out(exported, tmp_path, bare)
    assert (again.returncode, again.stdout) == (0, f"exists: {out}\n")
    assert len(read_safetensors(steps / "step_10")) == said["tensors"]


def test_without_a_checkpoint_the_job_fails_and_says_why(exported: Step, tmp_path: Path, bare: str) -> None:
    done = carried_out(exported, tmp_path, bare)
    assert done.returncode == 2
    assert "error[checkpoint-missing]: " in done.stderr
    assert "holds no complete checkpoint" in done.stderr


def test_without_numpy_the_job_says_what_to_add(exported: Step, tmp_path: Path, bare: str) -> None:
    for link in (tmp_path / "bare").glob("lib/python*/site-packages/numpy*"):
        link.unlink()
    done = carried_out(exported, tmp_path, bare)
    assert done.returncode == 2
    assert "error[no-package]: a conversion needs the package numpy" in done.stderr
    assert 'packages = ["numpy"]' in done.stderr


@pytest.mark.torch
def test_the_demos_model_in_the_demos_environment(torch_run: TorchRun, tmp_path: Path) -> None:
    """Its environment runs the step, and transformers reads what came out: the same weights and logits."""
    layout = Layout(format="hf", name=CHECKPOINT, complete=CHECKPOINT_LAST)
    step = packed(planned.convert_checkpoint("hf", "hf", NEWEST, layout), tmp_path)
    shape = read(DEMO)["train"]["trl"]["config"]
    (tmp_path / "shape.json").write_text(json.dumps(shape))
    saved = tmp_path / "ck/checkpoint-100"
    torch_run("demo_model.py", "make", saved, tmp_path / "shape.json")
    (saved / CHECKPOINT_LAST).write_text("{}")
    write_manifest(saved)
    done = carried_out(step, tmp_path, os.environ["HPCTRAIN_TORCH_PYTHON"])
    assert done.returncode == 0, done.stderr
    out = tmp_path / "ck/hf/checkpoint-100"
    assert not (out / CHECKPOINT_LAST).exists()
    torch_run("demo_model.py", "same", saved, out)


def test_what_lies_aside_hides_nothing_of_the_environment(exported: Step, tmp_path: Path) -> None:
    names = zipfile.ZipFile(tmp_path / "job.zip").namelist()
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"hpctrain", "hpctrain_job", "hpctrain_plugins", "lib"}
    assert "lib/attr/__init__.py" in names
    own = attrs.__file__
    assert own is not None
    (tmp_path / "own/attr").mkdir(parents=True)
    (tmp_path / "own/attr/__init__.py").write_text("raise SystemExit('the own one')")
    env = {"PYTHONPATH": f"{tmp_path}/job.zip:{tmp_path}/own"}
    program = "import hpctrain_plugins.checkpoints.export.in_job as j; j.main(['a', 'b', 'c'])"
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60
    )
    assert done.stderr.strip() == "the own one"
