"""`doctor` says before a purge what of your runs the site will delete."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from tests.e2e.product import Product, small

DAY = 86400
SITE = "[storage.runs]\npurge_days = 14\n\n[storage.checkpoints]\npurge_days = 14\n"


def purged(user: Product, site: Path) -> list[str]:
    """What `doctor` says of purges."""
    done = user("doctor", "local", "--json", code=None, HPCTRAIN_SITE=str(site))
    rows = json.loads(done.stdout)["findings"]
    return [row["found"] for row in rows if row["fact"].startswith("purge of")]


def unused_for(days: float, *files: Path) -> None:
    """Nobody has read or written these since."""
    then = time.time() - days * DAY
    for file in files:
        os.utime(file, (then, then))


def test_files_that_go_within_a_week_are_named_with_the_day(here: Product) -> None:
    here.write(small('mkdir -p "$HPC_CHECKPOINTS"/1 && echo weights >"$HPC_CHECKPOINTS"/1/model'))
    here("submit", "--wait")
    site = here.folder / "site.toml"
    site.write_text(SITE, encoding="utf-8")
    assert purged(here, site) == []
    (model,) = here.home.rglob("checkpoints/small/*/1/model")
    unused_for(6, model)
    assert purged(here, site) == []
    unused_for(10, model)
    (line,) = purged(here, site)
    day = time.strftime("%Y-%m-%d", time.localtime(time.time() + 4 * DAY))
    assert line.startswith(f"small/1: {model.parents[1]} loses files from {day}")
    unused_for(20, here.run_path("small") / "plan.json")
    first, second = purged(here, site)
    assert str(here.run_path("small")) in first
    assert second == line


def test_where_nothing_is_purged_nobody_looks(here: Product) -> None:
    here.write(small("true"))
    here("submit", "--wait")
    unused_for(1000, here.run_path("small") / "plan.json")
    empty = here.folder / "site.toml"
    empty.write_text("", encoding="utf-8")
    assert purged(here, empty) == []
