"""Sarus Suite on Alps's twin: images by their names from the user's own store, entered by `--edf`."""

from __future__ import annotations

import pytest

from tests.twin.alps import Builder, prepared
from tests.twin.fixtures import Start

pytestmark = [pytest.mark.twin, pytest.mark.slow]

STORE = "/capstor/scratch/cscs/alice/.parallax_imagestore"


def test_an_image_is_built_into_the_store_and_entered_by_its_name(twin: Start) -> None:
    alps = prepared(twin("alps"))
    one = Builder(alps, "sarus")
    found = one.train(engine="sarus")
    assert [row["step"] for row in found["steps"]] == ["inspect", "image", "verify", "train"]
    assert "twin-pure 1.0" in one.printed(found)
    (image,) = alps.sh(f"ls {STORE}").split()
    assert image.startswith("localhost+hpctrain+sarus:")
    assert one.lies("sarus-*.sqsh") == []
    job = alps.sh(f"cat {found['path']}/steps/train/job.sh")
    assert '--edf=./steps/"${HPC_STEP}"/environment.toml' in job
    assert "--environment" not in job
    again = one.train(engine="sarus")
    assert "image" in one.there(again)
    # The store lies on scratch, which the site empties by age: told, and made anew by the next submission.
    alps.sh(f"rm {STORE}/*")
    one.submit()
    gone = one.until("failed", seconds=120)
    said = alps.sh(f"cat {gone['path']}/logs/train.log")
    assert "was there when the run was planned, and is gone: submit again" in said
    assert one.train(engine="sarus")["state"] == "done"
