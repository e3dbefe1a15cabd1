"""A second `submit` of the same run file: the plan knows the first, and one option goes on with it."""

from __future__ import annotations

import pytest

from tests.e2e.product import Product, small

SAVES = (
    "n=$(ls {checkpoints} | wc -l); mkdir -p {checkpoints}/checkpoint-$((500 + 250 * n)); "
    "mkdir -p {checkpoints}/checkpoint-9.tmp; ((n > 1))"
)
"""Ends badly the first time, at step 500, and well the second time."""


def run_file() -> str:
    return small(SAVES).replace("[train.command]\n", '[train.command]\ncheckpoints = "."\n')


def noted(user: Product) -> list[str]:
    """What the plan says of an earlier run."""
    return [line for line in user("plan", "run.toml").stdout.splitlines() if "same plan" in line]


def test_an_earlier_run_of_the_plan_is_named_and_gone_on_with(here: Product) -> None:
    here.write(run_file())
    assert noted(here) == []
    assert here.json("plan", "run.toml")["survey"]["earlier"] is None
    here("submit", "--wait", code=8)
    (line,) = noted(here)
    assert line.startswith(
        "small/1 is the same plan, not finished, newest checkpoint at step 500: submit --resume"
    )
    earlier = here.json("plan", "run.toml")["survey"]["earlier"]
    assert [earlier[key] for key in ("title", "finished", "step")] == ["small/1", False, 500]
    assert here("submit", "--resume", "--wait").stdout.strip() == "small/1"
    assert noted(here) == ["small/1 is the same plan, and finished, newest checkpoint at step 1000"]
    assert here("submit", "--resume", "--wait").stdout.strip() == "small/1"  # nothing is left to do


def test_without_the_option_a_new_run_begins(here: Product) -> None:
    here.write(run_file())
    here("submit", "--wait", code=8)
    here("submit", "--wait", code=8)
    assert noted(here)[0].startswith("small/2 is the same plan, not finished")


def test_another_plan_is_another_run(here: Product) -> None:
    here.write(run_file())
    here("submit", "--wait", code=8)
    here.write(run_file().replace("500", "600"))
    assert noted(here) == []
    here("submit", "--resume", "--wait", code=8)
    assert noted(here)[0].startswith("small/2 is the same plan, not finished, newest checkpoint at step 600")


@pytest.mark.parametrize("damage", ["closed", "gone"])
def test_checkpoints_that_cannot_be_listed_hide_no_run(here: Product, damage: str) -> None:
    here.write(run_file())
    here("submit", "--wait", code=8)
    (folder,) = (here.home / ".local/share/hpctrain/checkpoints/small").iterdir()
    folder.rename(folder.with_name("elsewhere"))
    if damage == "closed":
        folder.write_text("a file stands there")
    assert noted(here) == ["small/1 is the same plan, not finished: submit --resume goes on with it"]
