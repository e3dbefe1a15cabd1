"""`[environment] stack`: a trainer's packages by the month in which somebody saw them work together."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hpctrain.errors import ConfigError
from hpctrain.model.run import Package
from hpctrain.runfile.reading.toml import loads
from hpctrain.session import Session
from hpctrain_plugins.trainers import automodel, nanotron, neox, trl
from tests.house.sources import ROOT

TRAINERS = {"automodel": automodel, "nanotron": nanotron, "neox": neox, "trl": trl}
STACKS = [(name, month) for name, module in TRAINERS.items() for month in module.STACKS]


def _session(folder: Path, environment: str, trainer: str = "neox") -> Session:
    path = folder / "run.toml"
    path.write_text(
        f'name = "x"\ncluster = "local"\n[environment]\n{environment}\n[train]\nuse = "{trainer}"\n'
    )
    return Session(path, environ={"HOME": str(folder)})


def _names(packages: tuple[Package, ...]) -> list[str]:
    return [package.requirement for package in packages]


@pytest.mark.parametrize(("trainer", "month"), STACKS)
def test_a_stack_is_the_packages_of_a_run(trainer: str, month: str, tmp_path: Path) -> None:
    stack = TRAINERS[trainer].STACKS[month]
    found = _session(tmp_path, f'stack = "{month}"', trainer).run.environment
    assert re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", month)
    assert (_names(found.packages), _names(found.compile)) == (list(stack.packages), list(stack.compile))
    assert all(package.name for package in (*found.packages, *found.compile))


def test_the_run_files_own_packages_win(tmp_path: Path) -> None:
    mine = 'packages = ["Transformers==4.57.6", "wandb"]'
    found = _session(tmp_path, f'stack = "2026-11"\n{mine}').run.environment
    assert _names(found.packages)[:2] == ["Transformers==4.57.6", "wandb"]
    assert "transformers==5.23.0" not in _names(found.packages)
    assert "sentencepiece==0.2.3" in _names(found.packages)
    assert _names(found.compile) == ["deepspeed==0.19.8"]


@pytest.mark.parametrize("said", ["[]", '["deepspeed==0.16.5"]'])
def test_what_is_built_is_the_run_files_where_it_says_so(said: str, tmp_path: Path) -> None:
    found = _session(tmp_path, f'stack = "2026-11"\ncompile = {said}').run.environment
    assert str(_names(found.compile)).replace("'", '"') == said


def test_a_package_that_the_image_builds_is_not_installed_twice(tmp_path: Path) -> None:
    found = _session(tmp_path, 'stack = "2026-11"\ncompile = ["sentencepiece==0.2.3"]').run.environment
    assert "sentencepiece==0.2.3" not in _names(found.packages)


@pytest.mark.parametrize(
    ("trainer", "says"),
    [
        ("neox", 'stack is "2026-1"; the trainer neox has 2026-11'),
        ("trl", 'stack is "2026-1"; the trainer trl has 2025-10, 2026-11'),
        ("command", 'stack is "2026-1"; the trainer command has none'),
    ],
)
def test_an_unknown_month(trainer: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        _ = _session(tmp_path, 'stack = "2026-1"', trainer).run
    (problem,) = caught.value.problems
    assert (problem.code, problem.message) == ("unknown-stack", says)
    assert problem.span is not None
    assert problem.span.line == 4
    assert problem.hint == ("" if trainer == "command" else 'stack = "2026-11"')


def test_both_stacks_of_trl_are_those_that_the_tests_train_with() -> None:
    demo: dict[str, Any] = loads((ROOT / "plugins/hpctrain_plugins/local/demo/run.toml").read_text())
    assert set(trl.STACKS["2026-11"].packages) < set(demo["environment"]["packages"])
    setup = (ROOT / "tests/setup/torch.sh").read_text()
    assert all(package in setup for package in trl.STACKS["2025-10"].packages)


def test_a_stack_reaches_the_environment_and_the_lock(tmp_path: Path) -> None:
    """The same as if its packages were typed: the lock is of all of them."""
    from hpctrain.lock import request_hash

    one = _session(tmp_path, 'use = "venv"\nstack = "2025-10"', "trl").run
    two = _session(tmp_path, 'use = "venv"\nstack = "2026-11"', "trl").run
    assert request_hash(one) != request_hash(two)
    typed = ", ".join(f'"{package}"' for package in trl.STACKS["2026-11"].packages)
    same = _session(tmp_path, f'use = "venv"\npackages = [{typed}]', "trl")
    assert request_hash(same.run) == request_hash(two)
    stack = _session(tmp_path, 'use = "venv"\nstack = "2026-11"', "trl")
    assert stack.plan().digest == same.plan().digest
    steps = _session(tmp_path, 'use = "venv"\nstack = "2026-11"', "trl").plan().steps
    assert "transformers==5.23.0" in str(next(s.step for s in steps if s.name == "env"))
