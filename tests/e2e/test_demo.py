"""The demo on a bare machine: it builds, learns, says so in one line, and fails when nothing is learnt."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.conftest import needs
from tests.e2e.ejected import carried_out, metrics, poisoned
from tests.e2e.product import Product, installed
from tests.patience import PATIENCE, within

pytestmark = [pytest.mark.torch, pytest.mark.slow]
FIRST_SECONDS, SECOND_SECONDS = 360, 60
LINE = re.compile(
    r"run=(?P<run>demo/\d+) loss=(?P<loss>\d\.\d{4}) exact=(?P<exact>\d\.\d{3}) picture=(?P<picture>\S+)"
)


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """A user whose home was empty; the tests of this file follow each other in it."""
    installed()
    torch = bool(os.environ.get("HPCTRAIN_TORCH_PYTHON"))
    needs(
        "torch", torch, "HPCTRAIN_TORCH_PYTHON names no interpreter with torch: it was never installed here"
    )
    root = tmp_path_factory.mktemp("demo")
    for name in ("home", "work"):
        (root / name).mkdir()
    return Product(root / "home", root / "work", {"OMP_NUM_THREADS": "1"})


def test_an_interrupted_build_goes_on(user: Product) -> None:
    """Ctrl-C while the environment is built, then the same command to the end, then once more."""
    began = time.monotonic()
    process = user.start("demo")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("1/4 env: started"):
            break
    time.sleep(8)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30 * PATIENCE)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "interrupted; finished work is kept. To resume: hpctrain demo" in said
    interrupted = time.monotonic() - began
    done = user("demo", limit=FIRST_SECONDS * PATIENCE + interrupted)
    assert "1/4 env: ok" in done.stderr
    assert "3/4 train: job" in done.stderr
    assert len(done.stdout.splitlines()) == 1
    found = LINE.fullmatch(done.stdout.strip())
    assert found is not None, done.stdout
    assert found["run"] == "demo/1"
    assert float(found["loss"]) < 0.5
    assert float(found["exact"]) >= 0.9
    assert time.monotonic() - began < FIRST_SECONDS * PATIENCE + interrupted


def test_the_second_time_everything_exists(user: Product) -> None:
    with within(SECOND_SECONDS):
        done = user("demo")
    assert [line.split()[1] for line in done.stderr.splitlines()[:4]] == ["exists"] * 4
    assert LINE.fullmatch(done.stdout.strip())
    assert user.json("demo")["run"] == "demo/1"


def test_the_picture_shows_the_metrics(user: Product) -> None:
    found = LINE.fullmatch(user("demo").stdout.strip())
    assert found is not None
    rows = metrics(user.run_path("demo/1"))
    picture = ElementTree.parse(user.folder / found["picture"]).getroot()
    said = next(element.text for element in picture.iter() if element.tag.endswith("}metadata"))
    (curve,) = json.loads(said or "")["curves"]
    assert curve["points"] == [[row["step"], row["loss"]] for row in rows if "loss" in row]
    assert rows[0]["loss"] > 5


def test_the_ejected_demo_loses_the_same(user: Product, tmp_path: Path) -> None:
    script = user("eject", "hpctrain-demo/run.toml", "-o", "out").stdout.strip()
    carried_out(script, poisoned(tmp_path), limit=180)
    assert metrics(user.folder / "out") == metrics(user.run_path("demo/1"))


def test_a_copy_of_the_lock_loses_the_same(user: Product) -> None:
    """In another folder, under another name, by somebody whose settings would have it end at once."""
    user("demo", limit=FIRST_SECONDS * PATIENCE)
    first = user.run_path("demo/1")
    copy = user.write((first / "run.lock.toml").read_text(), "elsewhere/paper.toml")
    settings = user.write("[run.train.trl]\nmax_steps = 1\n", "settings.toml")
    done = user(
        "submit", str(copy), "--locked", "--wait", limit=180 * PATIENCE, HPCTRAIN_SETTINGS=str(settings)
    )
    second = user.run_path(
        next(line for line in done.stdout.splitlines() if line.startswith("demo/")).split()[0]
    )
    assert second != first
    assert second.name.partition("-")[2] == first.name.partition("-")[2]
    assert metrics(second) == metrics(first)


def test_without_learning_it_fails(user: Product) -> None:
    done = user("demo", "--set", "train.trl.learning_rate=0", code=8, limit=180 * PATIENCE)
    assert "error[demo-failed]: the model did not learn: loss 6." in done.stderr
    assert "needed: loss from above 5.0 to below 0.5, exact at least 0.9" in done.stderr
    assert done.stdout == ""
