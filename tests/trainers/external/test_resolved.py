"""The run's one file: numbers stay numbers, places become paths, and the job writes what only it knows."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hpctrain.errors import PluginError
from hpctrain.model.layer import Quote
from hpctrain.model.words import Join, Loc, Raw, Secret, Var
from hpctrain.render import files
from hpctrain_plugins.trainers.external.resolved import filled, yaml_file
from tests.patience import PATIENCE
from tests.trainers import plans

LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=20))
KEYS = st.text(min_size=1, max_size=8)
TREES = st.recursive(LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(KEYS, v, max_size=3))


@given(st.dictionaries(KEYS, TREES, max_size=5))
@settings(max_examples=60, derandomize=True)
def test_every_value_is_read_back_as_it_was(values: dict[str, Any]) -> None:
    file = yaml_file("x.yaml", values)
    assert not files.is_late(file, plans.BINDING)
    assert yaml.safe_load(files.text(file, plans.BINDING)) == values


def test_small_numbers_do_not_become_text() -> None:
    text = files.text(yaml_file("x", {"lr": 1e-5, "eps": 1e-08, "big": 1e30}), plans.BINDING)
    assert yaml.safe_load(text) == {"lr": 1e-5, "eps": 1e-08, "big": 1e30}


def test_places_become_paths_whatever_is_in_them() -> None:
    values = {"a": Loc("assets", "x: #1"), "b": [Join(Loc("runs", "r"), "/y 'z'")], "word0x": "word1x"}
    file = yaml_file("x.yaml", values)
    assert file.quote is Quote.YAML
    read = yaml.safe_load(files.text(file, plans.BINDING))
    assert read == {"a": "/fs/assets/x: #1", "b": ["/fs/runs/r/y 'z'"], "word0x": "word1x"}


def test_the_job_writes_what_only_it_knows(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash
    file = yaml_file("x.yml", {"save": Var("HPC_CHECKPOINTS"), "lr": 1e-5, "out": Join(Var("HPC_RUN"), "/x")})
    assert files.is_late(file, plans.BINDING)
    helper = Path(files.__file__).with_name("job.sh").read_text()
    lines = files.written_by_job(str(tmp_path / "x.yml"), file, plans.BINDING)
    script = tmp_path / "s.sh"
    script.write_text("\n".join([helper, *lines, ""]))
    folder = 'a "quoted" back\\slash: #x'
    env = {"HPC_CHECKPOINTS": folder, "HPC_RUN": "/r", "PATH": "/usr/bin:/bin"}
    subprocess.run([bash, str(script)], env=env, check=True, timeout=20 * PATIENCE)
    read = yaml.safe_load((tmp_path / "x.yml").read_text())
    assert read == {"save": folder, "lr": 1e-5, "out": "/r/x"}


@pytest.mark.parametrize("word", [Secret("wandb"), Raw("$(x)")])
def test_a_secret_never_stands_in_a_file(word: Any) -> None:
    with pytest.raises(PluginError, match="cannot be used in"):
        yaml_file("x", {"a": Join("x", word)} if isinstance(word, Secret) else {"a": Join(word)})


def test_every_text_is_filled_and_nothing_else() -> None:
    values = {"a": "x", "b": ["y", 1, None], "c": {"d": True, "e": "z"}}
    assert filled(values, str.upper) == {"a": "X", "b": ["Y", 1, None], "c": {"d": True, "e": "Z"}}
