"""What the pulse of a rank costs: `python -m bench.pulse PYTHON`, an interpreter with torch.

One rank over gloo with two groups beats as it does in a job, into memory; the processor time of its thread is
counted. Written to `bench/pulse.md`.
"""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
from pathlib import Path

GATE = 0.001
"""The share of one core that a pulse may take."""
TICKS = 400
ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """
import sys, tempfile, time
from pathlib import Path
import torch.distributed as dist
from hpctrain_job.hangs import pulse

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
dist.new_group([0])
with tempfile.TemporaryDirectory(dir=sys.argv[1]) as folder:
    beating = pulse.Pulse(Path(folder))
    beating.tick()
    began = time.process_time()
    for _ in range(int(sys.argv[2])):
        beating.tick()
    print((time.process_time() - began) / int(sys.argv[2]), pulse.TICK)
dist.destroy_process_group()
"""
PAGE = """# What the pulse of a rank costs

`make bench`, {date}, {machine}, Python {python}. Processor time of one look and one write, the mean
of {ticks}, with two groups; by its pace the share of one core, whatever a step takes. Its gate is {gate:.1%}.

| folder | a tick | share of one core |
| --- | --- | --- |
{rows}"""


def main() -> int:
    """Measure, write the page, and say whether the gate holds."""
    rows, worst = [], 0.0
    for folder in ("/dev/shm", "/tmp"):  # noqa: S108  # where jobs write, and a disk to compare with
        done = subprocess.run(
            [sys.argv[1], "-c", PROGRAM, folder, str(TICKS)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "core")},
            capture_output=True, text=True, check=True, timeout=300,
        )  # fmt: skip
        seconds, pace = map(float, done.stdout.split())
        rows.append(f"| {folder} | {seconds * 1e6:.0f} µs | {seconds / pace:.3%} |\n")
        worst = max(worst, seconds / pace) if folder == "/dev/shm" else worst  # noqa: S108
    page = PAGE.format(
        date=datetime.datetime.now(datetime.timezone.utc).date(),
        machine=f"{os.cpu_count()} cores ({platform.machine()}), {platform.system()}",
        python=platform.python_version(), ticks=TICKS, gate=GATE, rows="".join(rows),
    )  # fmt: skip
    Path(__file__).with_suffix(".md").write_text(page)
    print(page, end="")
    return int(worst > GATE)


if __name__ == "__main__":
    sys.exit(main())
