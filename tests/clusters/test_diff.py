"""`hpctrain diff` between Olivia and Alps: a page for each run, the keys that differ and no others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hpctrain.plan.diff import diff
from hpctrain.session import Session
from tests.clusters import ROOT
from tests.e2e.conftest import here as here
from tests.e2e.product import Product

GOLDEN = ROOT / "tests/golden/diff"
PAIR = ("olivia", "alps")
ON = ("--on", "olivia", "--on", "alps", "--account", "nn9999k")
RUNS = (
    ROOT / "hpc_alps/hpc_alps/examples/two-nodes.toml",
    ROOT / "hpc_olivia/hpc_olivia/examples/sft-4gpu.toml",
)
PAGE = 60
UNSTABLE = ((re.compile(r"\b[0-9a-f]{12}\b"), "k" * 12), (re.compile(r"\b[0-9a-f]{8}\b"), "d" * 8))

runs = pytest.mark.parametrize("run", RUNS, ids=lambda path: path.stem)


@runs
def test_a_pair_is_one_page(run: Path, here: Product, request: pytest.FixtureRequest) -> None:
    said = here("diff", str(run), *ON).stdout
    for pattern, instead in UNSTABLE:
        said = pattern.sub(instead, said)
    assert len(said.splitlines()) <= PAGE
    file = GOLDEN / f"{run.stem}-{'-'.join(PAIR)}.txt"
    if request.config.getoption("--update-golden"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(said)
    assert said == file.read_text()


@runs
def test_exactly_the_variables_that_differ(run: Path, here: Product) -> None:
    document = json.loads(here("diff", str(run), *ON, "--json").stdout)
    one, other = (variables(run, name, here.home) for name in PAIR)
    differ = {name for name in {*one, *other} if one.get(name) != other.get(name)}
    names = {*one, *other}
    assert differ == names & set(document["rows"])
    assert names - differ == names & set(document["same"])
    assert not set(document["rows"]) & set(document["same"])


@pytest.mark.parametrize("name", PAIR)
def test_equal_plans_have_no_rows(name: str, here: Product) -> None:
    plans = [session(RUNS[0], name, here.home, user).plan() for user in ("ada", "grace")]
    rows, same = diff(plans)
    assert rows == []
    assert len(same) > 20


def session(run: Path, name: str, home: Path, user: str = "me") -> Session:
    return Session(
        run, on=name, sets=['resources.account="nn9999k"'], environ={"USER": user, "HOME": str(home)}
    )


def variables(run: Path, name: str, home: Path) -> dict[str, Any]:
    """The variables of training by their values, read from the plan itself."""
    train = session(run, name, home).plan().step_named("train")
    assert train is not None
    return {v.name: v.value for v in train.around.env}
