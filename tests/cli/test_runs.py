"""Lists of many runs: what is over is read from one line, what lives costs one question."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

from tests.budgets.measure import calls, cpu
from tests.budgets.small import small_site
from tests.conftest import needs
from tests.e2e.product import PROGRAM, Product, small

CALLS_PER_RUN, MANY = 4, 200
"""Whether it is there, and whether it changed: two files of a run with one job."""
COUNTED = '#!/bin/sh\necho asked >>"$0.asked"\n'


def copies(registry: Path, run: Path, numbers: range) -> None:
    """More runs like `run`, in the list of runs too."""
    line = json.loads(registry.read_text().splitlines()[0])
    with registry.open("a") as file:
        for number in numbers:
            path = run.with_name(f"{number}-{run.name.partition('-')[2]}")
            shutil.copytree(run, path, symlinks=True)
            file.write(json.dumps({**line, "path": str(path)}) + "\n")


def states(here: Product) -> dict[str, str]:
    return {row["run"]: row["state"] for row in here.json("runs", "--all")["runs"]}


def test_a_thousand_runs_that_are_over_cost_a_line_each(here: Product, tmp_path: Path) -> None:
    needs("strace", shutil.which("strace") is not None, "strace is not installed")
    here.write(small("true"))
    here("submit", "--wait")
    registry, run = here.home / ".local/state/hpctrain/runs.jsonl", here.run_path("small/1")
    counts = {}
    for first, last in ((2, MANY), (MANY + 1, 2 * MANY)):
        copies(registry, run, range(first, last + 1))
        assert set(states(here).values()) == {"done"}  # from here on they are known to be over
        argv = here.argv("runs", "--all")
        counts[last] = calls(argv, here.environment, tmp_path / "calls")
        print(last, counts[last], cpu((str(PROGRAM), "runs", "--all"), here.environment))
    assert (counts[2 * MANY] - counts[MANY]) / MANY <= CALLS_PER_RUN


def test_a_run_that_goes_on_is_looked_at_again(here: Product) -> None:
    here.write(small('[ -e "$HPC_RUN/again" ]'))
    here("submit", "--wait", code=8)
    assert states(here) == {"small/1": "failed"} == states(here)
    (here.run_path("small/1") / "again").touch()
    here("continue", "small/1")
    here("logs", "-f", "small/1")
    assert states(here) == {"small/1": "done"} == states(here)


def test_a_job_that_an_administrator_starts_again_is_noticed(here: Product) -> None:
    here.write(small("exit 3"))
    here("submit", "--wait", code=8)
    assert states(here) == {"small/1": "failed"}
    step = here.run_path("small/1") / "steps/train"
    began, ended = (step / "jobs.jsonl").read_text().splitlines()
    (step / "jobs.jsonl").write_text(f"{began}\n{ended}\n{began}\n{ended}\n")
    (step / "exit").write_text((step / "exit").read_text().replace('"code":3', '"code":0'))
    assert states(here) == {"small/1": "done"}


def test_a_list_of_settled_runs_that_is_rubbish_is_no_list(here: Product) -> None:
    here.write(small("true"))
    here("submit", "--wait")
    path = str(here.run_path("small/1"))
    unchanged = {"path": path, "changed": {}}
    bad_row = {"state": "failed", "node_hours": "x", "metrics": 1}
    for line in (
        {"path": path},
        {"path": path, "changed": []},
        {**unchanged, "state": "x"},
        unchanged | bad_row,
    ):
        (here.home / ".local/state/hpctrain/settled.jsonl").write_text(json.dumps(line) + "\n")
        assert states(here) == {"small/1": "done"}


def test_many_runs_that_live_are_one_question(tmp_path: Path) -> None:
    site = small_site(tmp_path)
    for name in ("squeue", "sacct"):
        program = tmp_path / "bin" / name
        program.write_text(COUNTED)
        program.chmod(stat.S_IRWXU)
    user = Product(tmp_path / "home", tmp_path, {**site.env, "PATH": f"{PROGRAM.parent}:{site.env['PATH']}"})
    user("submit")
    (run,) = (tmp_path / "home/runs/start").glob("1-*")
    copies(tmp_path / "home/.local/state/hpctrain/runs.jsonl", run, range(2, 101))
    (tmp_path / "bin/squeue.asked").unlink(missing_ok=True)
    assert set(states(user).values()) == {"unknown"}  # nobody knows these jobs: they are not called over
    assert (tmp_path / "bin/squeue.asked").read_text() == "asked\n"
    assert (tmp_path / "bin/sacct.asked").read_text() == "asked\n"
    assert not (tmp_path / "home/.local/state/hpctrain/settled.jsonl").exists()
