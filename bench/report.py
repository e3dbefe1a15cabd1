"""What a report of 100,000 steps costs: `python -m bench.report`, written into report.md beside this file."""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("hpctrain")
STEPS, ROUNDS = 100_000, 5
SECONDS, MEGABYTES = 2.0, 1.0
"""The most that a report may take."""
RUN = """
name    = "bench"
cluster = "local"
environment = { use = "" }
train = { use = "command", command = { argv = ["true"], ranks = "once" } }
"""
TEXT = """\
# What a report costs

`python -m bench.report`, {date}, {cores} cores ({machine}), Python {python}. A run of {steps:,} steps with
six columns and an evaluation every 1,000: `metrics.jsonl` has {rows:.0f} MB. CPU time is user and system
of the whole command, the least of {rounds}.

| | CPU | file |
|---|---|---|
| `hpctrain report` | {seconds:.2f} s (at most {most:g}) | {size:.2f} MB (at most {largest:g}) |
"""


def main() -> int:
    """Measure and write; 1 where a gate is missed."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        here = Path(folder)
        (here / "run.toml").write_text(RUN)
        environ = {**os.environ, "HOME": folder}
        _run(here, environ, "submit", "--wait")
        path = json.loads(_run(here, environ, "status", "--json"))["path"]
        rows = write_rows(Path(path) / "metrics.jsonl")
        seconds = min(_cpu(here, environ) for _ in range(ROUNDS))
        size = (here / "report.html").stat().st_size / 1e6
    text = TEXT.format(
        date=datetime.datetime.now(datetime.timezone.utc).date(), cores=os.cpu_count(),
        machine=platform.machine(), python=platform.python_version(), steps=STEPS, rows=rows / 1e6,
        rounds=ROUNDS, seconds=seconds, most=SECONDS, size=size, largest=MEGABYTES,
    )  # fmt: skip
    Path(__file__).with_suffix(".md").write_text(text)
    print(text)
    return 0 if seconds <= SECONDS and size <= MEGABYTES else 1


def write_rows(path: Path) -> int:
    """A training's rows; how many bytes they are."""
    chance = random.Random(1)  # noqa: S311  (noise, no secret)
    with path.open("w") as file:
        for step in range(1, STEPS + 1):
            row = {
                "time": 1.8e9 + step * 1.7,
                "step": step,
                "loss": 2 + 6 * math.exp(-step / 8000) + chance.gauss(0, 0.08),
                "lr": 3e-4 * (0.5 + 0.5 * math.cos(step / STEPS * math.pi)),
                "grad_norm": abs(chance.gauss(0.5, 0.1)),
                "tokens": step * 262_144,
                "tokens_per_s": 48_000 + chance.gauss(0, 500),
                "mfu": round(0.3 + chance.gauss(0, 0.004), 4),
            }
            file.write(json.dumps(row) + "\n")
            if step % 1000 == 0:
                evaluation = {
                    "time": row["time"],
                    "step": step,
                    "eval_loss": 2.1 + 6 * math.exp(-step / 8000),
                }
                file.write(json.dumps(evaluation) + "\n")
    return path.stat().st_size


def _cpu(here: Path, environ: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run(here, environ, "report", "-o", "report.html")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _run(here: Path, environ: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [PROGRAM, *words], cwd=here, env=environ, check=True, timeout=300, capture_output=True, text=True
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
