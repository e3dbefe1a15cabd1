"""The programs that let a trainer's own code read the file: each ends badly when the trainer refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hpctrain_plugins.trainers import automodel, nanotron, neox
from hpctrain_plugins.trainers.external import deep
from tests.trainers.external import runs
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
"""Stand-ins of the two functions that the programs call; the real ones are asked in test_verdicts."""


@pytest.mark.parametrize("module", [nanotron, neox, automodel], ids=lambda m: m.NAME)
def test_the_step_holds_the_file_that_will_train(module: Any, request: pytest.FixtureRequest) -> None:
    trainer = request.node.callspec.id
    answer = runs.train(module, runs.spec(module, *FILES[module], options={"deep": True}))
    (step,) = answer.before
    assert step.name == deep.STEP
    assert step.inside
    assert step.layer.files[0] == answer.layer.files[0]
    assert trainer.replace("neox", "megatron") in str(step.layer.files[1].body)
    assert runs.train(module, runs.spec(module, *FILES[module])).before == ()


@pytest.mark.parametrize("trainer", READS)
@pytest.mark.parametrize(("text", "code"), [("good", 0), ("bad", 1)])
def test_it_ends_as_the_trainer_says(trainer: str, text: str, code: int, tmp_path: Path) -> None:
    module, path, source = READS[trainer]
    (tmp_path / path).parent.mkdir()
    (tmp_path / path).write_text(source)
    answer = runs.train(module, runs.spec(module, *FILES[module], options={"deep": True}))
    (tmp_path / "validate.py").write_text("".join(map(str, answer.before[0].layer.files[1].body)))
    (tmp_path / "x.yml").write_text(text)
    command = [sys.executable, "validate.py", "x.yml", "8"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == code, done.stderr
