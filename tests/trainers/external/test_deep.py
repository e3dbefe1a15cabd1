"""The programs that let a trainer's own code read the file: each ends badly when the trainer refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpctrain_plugins.trainers import automodel, nanotron, neox
from hpctrain_plugins.trainers.external import deep
from tests.patience import PATIENCE
from tests.trainers.external import real, runs
from tests.trainers.external.test_progress import FILES

NEOX = """
class NeoXArgs:
    @classmethod
    def from_ymls(cls, files, overwrite_values):
        assert open(files[0]).read() != 'bad'
        assert overwrite_values == {'global_num_gpus': 8}
"""
NANOTRON = """
def get_config_from_file(path):
    assert open(path).read() != 'bad'
"""
READS: dict[str, tuple[Any, str, str]] = {
    "nanotron": (nanotron, "nanotron/config.py", NANOTRON),
    "neox": (neox, "megatron/neox_arguments.py", NEOX),
}
"""Stand-ins of the two functions that the programs call, for machines without the real ones."""
UNKNOWN: dict[str, dict[str, Any]] = {
    "nanotron": {"tokens": {"wrong_key": 3}},
    "neox": {"wrong_key": 3},
    "automodel": {"step_scheduler": {"wrong_key": 3}},
}
"""Settings that each trainer's own code refuses."""
WITHOUT_GPU = {"neox": {"attention_config": [[["global"], 32]]}}
"""NeoX looks for flash-attn, which needs a GPU's compiler, when its file asks for it."""


@pytest.mark.parametrize("module", [nanotron, neox, automodel], ids=lambda m: m.NAME)
def test_the_step_holds_the_file_that_will_train(module: Any, request: pytest.FixtureRequest) -> None:
    trainer = request.node.callspec.id
    answer = runs.train(module, runs.spec(module, *FILES[module], options={"deep": True}))
    step = answer.before[-1]
    assert step.name == deep.STEP
    assert step.inside
    assert step.layer.files[0] == answer.layer.files[0]
    assert trainer.replace("neox", "megatron") in str(step.layer.files[1].body)
    without = runs.train(module, runs.spec(module, *FILES[module])).before
    assert [step.name for step in without] == (["neox-compile"] if trainer == "neox" else [])


@pytest.mark.parametrize("trainer", READS)
@pytest.mark.parametrize(("text", "code"), [("good", 0), ("bad", 1)])
def test_it_ends_as_the_trainer_says(trainer: str, text: str, code: int, tmp_path: Path) -> None:
    module, path, source = READS[trainer]
    (tmp_path / path).parent.mkdir()
    (tmp_path / path).write_text(source)
    answer = runs.train(module, runs.spec(module, *FILES[module], options={"deep": True}))
    (tmp_path / "validate.py").write_text("".join(map(str, answer.before[-1].layer.files[1].body)))
    (tmp_path / "x.yml").write_text(text)
    command = [sys.executable, "validate.py", "x.yml", "8"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30 * PATIENCE)
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize("module", [nanotron, neox, automodel], ids=lambda m: m.NAME)
def test_the_real_validator_reads_the_file_that_will_train(module: Any, tmp_path: Path) -> None:
    """The step's own program, with the trainer's own code: the run's file, then one with an unknown key."""
    name = module.NAME
    ends = []
    for settings in ({}, UNKNOWN[name]):
        options = {"deep": True, "settings": settings | WITHOUT_GPU.get(name, {})}
        run = runs.spec(module, *FILES[module], options=options)
        answer = runs.train(module, run)
        text = yaml.safe_dump(runs.resolved(answer, module.FILE))
        (tmp_path / module.FILE).write_text(text.replace("$HPC_", "/"))
        (tmp_path / "validate.py").write_text("".join(map(str, answer.before[-1].layer.files[1].body)))
        ends.append(real.run(name, "validate.py", module.FILE, "8", folder=tmp_path))
    assert [done.returncode for done in ends] == [0, 1], ends[0].stderr
    assert "wrong_key" in ends[1].stderr
